"""Parts of a domain's pairs: together they are the domain, and each is read where it is needed."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.formats import pairs as module
from batchwright.formats.pairs import PAIRS_SCHEMA, InMemory, RowGroup, Texts, pair_parts, pairs_file, read_pairs

PAIRS = pa.table(
    {
        "id": [f"{number:02d}" for number in range(20)],
        "query": [f"q{number}" for number in range(20)],
        "document": [f"d{number}" for number in range(20)],
        "domain": ["a"] * 20,
        "split": ["test" if number % 3 == 1 else "train" for number in range(20)],
        "negatives": [["n"] * (number % 3) for number in range(20)],
    },
    schema=PAIRS_SCHEMA,
)


@pytest.mark.parametrize(("few", "kind", "count"), [(0, RowGroup, 4), (1 << 20, InMemory, 1)])
def test_parts_are_all_pairs_of_the_split_wherever_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, kind: type, count: int
) -> None:
    monkeypatch.setattr(module, "_FEW_BYTES", few)
    pq.write_table(PAIRS, pairs_file(tmp_path, "a"), row_group_size=6)
    parts = pickle.loads(pickle.dumps(pair_parts(tmp_path, "a", "train")))
    assert [type(part) for part in parts] == [kind] * count
    for _ in range(2):
        read = pa.Table.from_batches(batch for part in parts for batch in part.read(PAIRS_SCHEMA.names))
        assert read.equals(read_pairs(tmp_path, "a", "train"))
    texts = pickle.loads(pickle.dumps([Texts(part, "document") for part in parts]))
    assert [text for own in texts for text in own] == read["document"].to_pylist()


def test_a_part_names_its_file_and_holds_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW_BYTES", 0)
    pq.write_table(PAIRS, pairs_file(tmp_path, "a"), row_group_size=6)
    assert b"q3" not in pickle.dumps(pair_parts(tmp_path, "a", "train"))


@pytest.mark.parametrize("few", [0, 1 << 20])
def test_missing_and_unsorted_pairs_are_refused_before_any_part_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(module, "_FEW_BYTES", few)
    with pytest.raises(InputError, match=r"a\.parquet: no such file; run the stage 'ingest' first"):
        pair_parts(tmp_path, "a", "train")
    across = [*range(6), *range(7, 12), 6, *range(12, 20)]  # sorted in each row group but two
    pq.write_table(PAIRS.take(across), pairs_file(tmp_path, "a"), row_group_size=6)
    with pytest.raises(InputError, match="ids are not sorted and unique"):
        pair_parts(tmp_path, "a", "train")
    swapped = [*range(6, 12), *range(6), *range(12, 20)]  # sorted in each row group
    pq.write_table(PAIRS.take(swapped), pairs_file(tmp_path, "a"), row_group_size=6)
    with pytest.raises(InputError, match="ids are not sorted and unique"):
        pair_parts(tmp_path, "a", "train")
