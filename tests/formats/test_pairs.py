"""Pairs and rejects as Parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.errors import InputError
from batchwright.formats.pairs import (
    PAIRS_SCHEMA,
    REJECTS_SCHEMA,
    domain_of,
    domains,
    file_stem,
    pair_parts,
    pairs_file,
    read_pairs,
    read_rejects,
    scan_pairs,
    scan_texts,
    write_table,
)


def table(*ids: str, split: str = "train") -> pa.Table:
    rows = [
        {"id": name, "query": "q", "document": "d", "domain": "a", "split": split, "negatives": ["n"]} for name in ids
    ]
    return pa.Table.from_pylist(rows, schema=PAIRS_SCHEMA)


def test_all_pairs_or_those_of_a_split_are_read_back(tmp_path: Path) -> None:
    both = pa.concat_tables([table("1", "3"), table("4", split="test")])
    write_table(pairs_file(tmp_path, "a"), both, PAIRS_SCHEMA)
    assert read_pairs(tmp_path, "a").equals(both)
    assert read_pairs(tmp_path, "a", "train")["id"].to_pylist() == ["1", "3"]
    assert read_pairs(tmp_path, "a", "test")["id"].to_pylist() == ["4"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_domain_name_can_be_a_file_name_and_is_recovered_from_it(domain: str) -> None:
    stem = file_stem(domain)
    assert domain_of(stem) == domain
    assert "/" not in stem
    assert "\0" not in stem


def test_domains_are_listed_by_their_own_names(tmp_path: Path) -> None:
    for domain in ("b", "a/c", "v1.2"):
        write_table(pairs_file(tmp_path, domain), table("1"), PAIRS_SCHEMA)
    assert domains(tmp_path) == ["a/c", "b", "v1.2"]


@pytest.mark.parametrize("ids", [("2", "1"), ("1", "1")])
def test_unsorted_or_repeated_ids_are_refused(tmp_path: Path, ids: tuple[str, str]) -> None:
    write_table(pairs_file(tmp_path, "a"), table(*ids), PAIRS_SCHEMA)
    with pytest.raises(InputError, match=r"a\.parquet: ids are not sorted and unique"):
        read_pairs(tmp_path, "a")


def test_ids_of_other_splits_are_checked_too(tmp_path: Path) -> None:
    both = pa.concat_tables([table("1"), table("4", split="test"), table("2"), table("3", split="test"), table("5")])
    write_table(pairs_file(tmp_path, "a"), both, PAIRS_SCHEMA)
    with pytest.raises(InputError, match=r"a\.parquet: ids are not sorted and unique"):
        read_pairs(tmp_path, "a", "train")
    with pytest.raises(InputError, match=r"a\.parquet: ids are not sorted and unique"):
        pair_parts(tmp_path, "a", "train")


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("group", [1, 3, 100])
def test_pairs_are_read_in_blocks_and_their_ids_checked_across_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, group: int
) -> None:
    monkeypatch.setattr("batchwright.formats.pairs.ROWS", rows)
    every = table(*"1234567")
    pq.write_table(every, pairs_file(tmp_path, "a"), row_group_size=group)
    found = list(scan_pairs(tmp_path, "a", columns=["query", "id"]))
    assert max(map(len, found)) <= min(rows, group)
    assert pa.Table.from_batches(found).equals(every.select(["query", "id"]))
    assert list(scan_texts(tmp_path, "a", "query")) == every["query"].to_pylist()
    pq.write_table(table(*"1235467"), pairs_file(tmp_path, "a"), row_group_size=group)
    with pytest.raises(InputError, match="ids are not sorted and unique"):
        list(scan_pairs(tmp_path, "a", columns=["query"]))


def test_a_missing_damaged_or_foreign_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pairs here; run the stage 'ingest' first"):
        domains(tmp_path)
    with pytest.raises(InputError, match=r"a\.parquet: no such file"):
        read_pairs(tmp_path, "a")
    write_table(pairs_file(tmp_path, "a"), table("1"), PAIRS_SCHEMA)
    content = pairs_file(tmp_path, "a").read_bytes()
    pairs_file(tmp_path, "a").write_bytes(content[:-20])
    with pytest.raises(InputError, match=r"a\.parquet: not a readable Parquet file"):
        read_pairs(tmp_path, "a")
    pq.write_table(pa.table({"text": ["x"]}), pairs_file(tmp_path, "a"))
    with pytest.raises(InputError, match=r"a\.parquet: columns are \['text'\], expected \['id', 'query'"):
        read_pairs(tmp_path, "a")


def test_rejects_are_read_back(tmp_path: Path) -> None:
    rejects = pa.Table.from_pylist([{"source": "s", "row": 3, "reason": "empty", "text": ""}], schema=REJECTS_SCHEMA)
    write_table(tmp_path / "rejects.parquet", rejects, REJECTS_SCHEMA)
    assert read_rejects(tmp_path / "rejects.parquet").equals(rejects)
