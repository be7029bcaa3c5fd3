"""What a file from a stranger may take of memory and disk."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core import untrusted_arrow, untrusted_text
from batchwright.core.errors import InputError
from pipelines import files
from tests.faults.sources import source

SMALLER = r"bytes of text and lists, more than [\d,]+; write the file with smaller row groups or record batches"


def values_of(column: pa.Array) -> list[object]:
    return untrusted_arrow.values_of("a", pa.record_batch({"a": column}), 1)[0]


def test_a_line_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_text, "MOST_CHARACTERS", 100)
    file = tmp_path / "a.jsonl"
    file.write_text('{"query": "q", "document": "d", "negatives": [], "topic": "t"}\n' + "x" * 101 + "\n")
    with pytest.raises(InputError, match=r"a.jsonl: line 2: the row is longer than 100 characters"):
        source("jsonl")(file)


def test_a_row_of_several_lines_has_the_same_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_text, "MOST_CHARACTERS", 100)
    file = tmp_path / "a.csv"
    file.write_text("query,document,topic\nq,d,t\n" + '"' + "line\n" * 30 + '",d,t\n')
    with pytest.raises(InputError, match=r"a.csv: line 3: the row is longer than 100 characters"):
        source("csv", columns={})(file)
    file.write_text("query,document,topic\n" + '"one\ntwo",d,t\n' * 50)
    source("csv", columns={})(file)


def test_a_compressed_file_may_not_become_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"query": "q", "document": "d", "negatives": [], "topic": "t"}\n' * 40_000))
    source("jsonl")(file)
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(files, "MOST_TIMES", 50)
    with pytest.raises(InputError, match=r"a.jsonl.gz: is more than 1,048,576 bytes when decompressed"):
        source("jsonl")(file)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_compressed_buffers_may_not_become_endless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: Any, compression: str
) -> None:
    text = pa.array(["x" * 1000] * 2000)
    batch = pa.record_batch({"query": text, "document": text.dictionary_encode(), "topic": text})
    file = tmp_path / "a.arrow"
    with new(file, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for _ in range(3):
            writer.write_batch(batch)
    monkeypatch.setattr(files, "MOST_TIMES", 1)
    whole = 3 * 2 * text.nbytes
    monkeypatch.setattr(files, "MOST_BYTES", whole + 100_000)
    source("arrow", columns={})(file)
    monkeypatch.setattr(files, "MOST_BYTES", whole - 100_000)
    with pytest.raises(InputError, match=r"a.arrow: is more than [\d,]+ bytes when decompressed"):
        source("arrow", columns={})(file)


def test_large_dictionaries_count_when_they_are_decompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.array([f"{number:01000}" for number in range(2000)]).dictionary_encode()
    file = tmp_path / "a.arrow"
    batch = pa.record_batch({"query": column, "document": column, "topic": column})
    with pa.ipc.new_file(file, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    monkeypatch.setattr(files, "MOST_TIMES", 1)
    monkeypatch.setattr(files, "MOST_BYTES", 1_000_000)
    with pytest.raises(InputError, match=r"a.arrow: is more than 1,000,000 bytes when decompressed"):
        source("arrow", columns={})(file)


def test_a_repeated_text_is_not_spread_out_without_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"query": ["x" * 1000] * 3000, "document": ["d"] * 3000, "topic": ["t"] * 3000})
    file = tmp_path / "a.parquet"
    pq.write_table(table, file)
    source("parquet", columns={})(file)
    monkeypatch.setattr(untrusted_arrow, "MOST_BYTES", 1_000_000)
    with pytest.raises(InputError, match=f"a.parquet: row 1 and those after it: 3000 rows hold 3,000,000 {SMALLER}"):
        source("parquet", columns={})(file)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.list_(pa.string())])
def test_texts_of_parquet_stay_in_dictionaries(tmp_path: Path, kind: pa.DataType) -> None:
    text = ["x" * 1000] if pa.types.is_list(kind) else "x" * 1000
    pq.write_table(pa.table({"a.b": pa.array([text] * 3000, kind)}), tmp_path / "a.parquet")
    with untrusted_arrow.open_parquet(tmp_path / "a.parquet", ["a.b"]) as table:
        batch = next(table.iter_batches())
    assert batch.nbytes < 100_000
    assert values_of(batch.column(0)) == [text] * 3000


def _views() -> pa.Array:
    """Many views of one text: NumPy's four numbers are length, the text's start, number of the buffer, and offset."""
    text = b"x" * 1000
    view = np.array([len(text), int.from_bytes(text[:4], "little"), 0, 0], np.int32)
    buffers = [None, pa.py_buffer(np.tile(view, (3000, 1)).tobytes()), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string_view(), 3000, buffers)


def _lists_in_a_dictionary() -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(3000, np.int32), pa.array([["x" * 100] * 10]))


def _items_of_no_bytes() -> pa.Array:
    return pa.array([[None] * 1000] * 3000, pa.list_(pa.null()))


def _values_of_no_bytes() -> pa.Array:
    return pa.array([{}] * 200_000, pa.struct([]))


@pytest.mark.parametrize("make", [_views, _lists_in_a_dictionary, _items_of_no_bytes, _values_of_no_bytes])
def test_what_is_there_once_is_not_spread_out_without_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], pa.Array]
) -> None:
    column = make()
    file = tmp_path / "a.arrow"
    batch = pa.record_batch({"query": column, "document": column, "topic": column})
    with pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    source("arrow", columns={})(file)
    monkeypatch.setattr(untrusted_arrow, "MOST_BYTES", 1 << 20)
    with pytest.raises(InputError, match=rf"a.arrow: row 1 and those after it: \d+ rows hold [\d,]+ {SMALLER}"):
        source("arrow", columns={})(file)


def test_a_file_may_hold_what_it_has_bytes_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_arrow, "MOST_BYTES", 100)
    for kind in (pa.string(), pa.string_view(), pa.list_(pa.string())):
        values = [["", "a text"], []] * 100 if pa.types.is_list(kind) else ["", "a text that is not inlined"] * 100
        assert values_of(pa.array(values, kind)) == values


def test_dictionaries_of_views_are_read() -> None:
    column = pa.DictionaryArray.from_arrays([1, 0, None], pa.array(["a", "b"], pa.string_view()))
    assert values_of(column) == ["b", "a", None]


def test_types_that_pyarrow_cannot_show_are_refused() -> None:
    """It reads intervals of months, as a flipped bit can make them of text, and has no class for them."""

    class Months:
        def __len__(self) -> int:
            return 1

        @property
        def columns(self) -> list[object]:
            raise KeyError(21)

    with pytest.raises(InputError, match=r"a\.arrow: a column has a type that PyArrow does not know; write it as text"):
        untrusted_arrow.values_of("a.arrow", Months(), 1)
