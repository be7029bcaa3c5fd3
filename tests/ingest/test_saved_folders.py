"""Folders that ``save_to_disk`` of the library ``datasets`` wrote, and that are damaged or hostile."""

from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest

from batchwright.core.errors import InputError
from pipelines import files
from pipelines.ingest.sources import huggingface
from pipelines.ingest.sources.huggingface import HuggingFaceSource
from project.add.peek import peek
from tests.faults.sources import rows

FILE = "data-00000-of-00001.arrow"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    pairs = [{"query": f"q {number}", "document": f"d {number}"} for number in range(9)]
    datasets.DatasetDict({"train": datasets.Dataset.from_list(pairs)}).save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def refusal(folder: Path) -> str:
    """What both ``ingest`` and ``batchwright add`` say."""
    huggingface._load.cache_clear()
    with pytest.raises(InputError) as added:
        peek({"kind": "huggingface", "name": str(folder)})
    with pytest.raises(InputError) as read:
        rows({"kind": "huggingface", "name": str(folder), "domain": "d"})
    assert str(added.value) == str(read.value)
    return str(read.value)


def write_stream(saved: Path, batches: list[pa.RecordBatch], compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(saved / "train" / FILE, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("dataset_dict.json", "{}"),
        ("dataset_dict.json", "1"),
        ("train/dataset_info.json", '{"features": {"query": "x"}}'),
        ("train/state.json", "{}"),
        (f"train/{FILE}", ""),
    ],
)
def test_a_damaged_file_is_refused(saved: Path, file: str, content: str) -> None:
    (saved / file).write_text(content)
    assert refusal(saved).startswith(f"dataset '{saved}': cannot be loaded (")


def test_offsets_that_point_outside_are_not_followed(saved: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1 << 30, 2], np.int32).tobytes())
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    write_stream(saved, [pa.record_batch({"query": bad, "document": ["d", "d"]})])
    assert refusal(saved).startswith(f"{saved}/train: cannot be read (")


def test_compressed_buffers_may_not_become_endless(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["x" * 1000] * 2000
    write_stream(saved, [pa.record_batch({"query": texts, "document": texts})], "zstd")
    rows({"kind": "huggingface", "name": str(saved), "domain": "d"})
    (saved / "train" / FILE).rename(saved / "train/any name")
    state = saved / "train/state.json"
    state.write_text(state.read_text().replace(FILE, "any name"))
    monkeypatch.setattr(files, "MOST_BYTES", 1_000_000)
    monkeypatch.setattr(files, "MOST_TIMES", 1)
    assert "any name: is more than 1,000,000 bytes when decompressed" in refusal(saved)


def test_rows_of_many_small_batches_are_all_read(saved: Path) -> None:
    write_stream(saved, [pa.record_batch({"query": [f"q {number}"], "document": ["d"]}) for number in range(9)])
    source = HuggingFaceSource(kind="huggingface", name=str(saved), domain="d")
    found = [row for part in source.parts() for row in source.rows(part)]
    assert [(row.number, row.query) for row in found] == [(number + 1, f"q {number}") for number in range(9)]
