"""Pairs with hard negatives as one plain file."""

import json
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.export import export
from tests.helpers import annotate_shards, run_python
from tests.train.toys import toy_batch, toy_rows, write_toy_shards

ROWS = [{**row, "negatives": [f"wrong {n} {k}" for k in range(2 + n % 3)]} for n, row in enumerate(toy_rows(16))]
"""Rows with two, three or four hard negatives."""


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two epochs of the same 16 pairs, in different orders."""
    batches = [toy_batch(rows[start : start + 4]) for rows in (ROWS, ROWS[::-1]) for start in range(0, 16, 4)]
    return write_toy_shards(tmp_path / "shards", batches, epochs=2)


def expected(negatives: int) -> list[dict[str, object]]:
    return [
        {
            "anchor": row["query"],
            "positive": row["document"],
            **{f"negative_{place}": text for place, text in enumerate(row["negatives"][:negatives], start=1)},
        }
        for row in ROWS
        if len(row["negatives"]) >= negatives
    ]


@pytest.mark.parametrize("negatives", [0, 2, 3])
def test_each_pair_is_written_once(shards: Path, tmp_path: Path, negatives: int) -> None:
    export(shards, tmp_path / "pairs.parquet", negatives)
    assert pq.read_table(tmp_path / "pairs.parquet").to_pylist() == expected(negatives)
    export(shards, tmp_path / "pairs.jsonl", negatives)
    lines = (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == expected(negatives)


def test_all_negatives_by_default_and_pairs_left_out_are_counted(shards: Path, tmp_path: Path) -> None:
    summary = export(shards, tmp_path / "pairs.parquet")
    kept = expected(4)
    assert pq.read_table(tmp_path / "pairs.parquet").to_pylist() == kept
    assert summary.startswith(f"{len(kept)} pairs with 4 hard negatives in ")
    assert f"; {16 - len(kept)} with fewer left out" in summary


def test_datasets_reads_both_kinds(shards: Path, tmp_path: Path) -> None:
    for kind, file in (("parquet", tmp_path / "pairs.parquet"), ("json", tmp_path / "pairs.jsonl")):
        export(shards, file, 2)
        found = datasets.load_dataset(kind, data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
        assert found.column_names == ["anchor", "positive", "negative_1", "negative_2"]
        assert list(found) == expected(2)


def test_metadata_are_columns_if_they_are_asked_for(shards: Path, tmp_path: Path) -> None:
    annotate_shards(shards)
    said = {"place": ["1", "2", "3", None] * 4, "their id": [(n % 4 and ROWS[n]["id"]) or None for n in range(16)]}
    summary = export(shards, tmp_path / "pairs.parquet", 2)
    assert summary.endswith("; without place, their id (see --metadata)")
    assert pq.read_table(tmp_path / "pairs.parquet").to_pylist() == expected(2)
    assert "without" not in export(shards, tmp_path / "with.jsonl", 2, metadata=True)
    lines = [json.loads(line) for line in (tmp_path / "with.jsonl").read_text().splitlines()]
    place = {None: None} | {row["id"]: str(n % 4) for n, row in enumerate(ROWS) if n % 4}
    assert [{**row, "their id": None, "place": None} for row in expected(2)] == [
        {**line, "their id": None, "place": None} for line in lines
    ]
    assert [line["place"] for line in lines] == [place[line["their id"]] for line in lines]
    assert {line["their id"] for line in lines} == set(place) and said


def test_what_cannot_be_exported_is_refused(shards: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pair has 5 hard negatives, the most are 4"):
        export(shards, tmp_path / "pairs.parquet", 5)
    with pytest.raises(InputError, match=r"must end in \.parquet or \.jsonl"):
        export(shards, tmp_path / "pairs.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["shards"]


def test_the_command(shards: Path, tmp_path: Path) -> None:
    done = run_python("-m", "project", "export", "shards", "pairs.jsonl", "--negatives", "2", cwd=tmp_path)
    assert done.stdout == "16 pairs with 2 hard negatives in pairs.jsonl\n"
    assert run_python("-m", "project", "export", "nothing", "pairs.jsonl", cwd=tmp_path).returncode == 1
