"""Reads Parquet files with the columns ``text`` and ``vector``, one batch of rows at a time.

A batch is so small that its texts take little memory, even if the file has them only once and repeats them in each row.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.grid import unit
from batchwright.core.untrusted_arrow import chunks
from batchwright.core.untrusted_text import check_row
from pipelines.files import MOST_TIMES, most_bytes, readable

T = TypeVar("T")

_ROWS, _BYTES = 512, 256 << 20
_DICTIONARY, _HEADER_BYTES = b"\x15\x04\x15", 16
"""How the header of a page with a dictionary begins, in Thrift's compact protocol, before its decompressed size."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Consecutive rows of ``file``, starting at row ``first``, counted from 1.

    ``vectors`` ``(n, d)`` are of unit length, or zero.
    """

    file: str
    first: int
    texts: list[str]
    vectors: NDArray[np.float16]


def count_rows(files: list[str]) -> int:
    """Total number of rows in ``files``."""
    total = 0
    for file in files:
        with readable(file), pq.ParquetFile(file) as table:
            total += table.metadata.num_rows
    return total


def read_rows(files: list[str]) -> Iterator[Rows]:
    """Read all rows, in order.

    Raises:
        InputError: a file is damaged or lacks a column, or a row lacks a text or a valid vector.
    """
    width = None
    for file in files:
        # Not mapped, batches would leave behind all that was read.
        with readable(file), pq.ParquetFile(file, memory_map=True) as table:
            _check_columns(file, table.schema_arrow)
            first, size = 1, 0
            for batch in ahead(table.iter_batches(rows_at_once(file, table), columns=["text", "vector"])):
                if len(batch):
                    size += _check_texts(file, first, batch["text"])
                    check_size(file, size)
                    rows = _to_rows(file, first, batch, width)
                    width = rows.vectors.shape[1]
                    yield rows
                first += len(batch)


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield ``items``, and make the next in another thread meanwhile; an error in it is raised where it would be."""
    rest, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, rest, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, rest, end)
            yield cast(T, item)


def _check_columns(file: str, schema: pa.Schema) -> None:
    for name in ("text", "vector"):
        if schema.names.count(name) != 1:
            raise InputError(f"{file}: must have one column '{name}'; columns found: {', '.join(schema.names)}")
    text, vector = schema.field("text").type, schema.field("vector").type
    if not (pa.types.is_string(text) or pa.types.is_large_string(text)):
        raise InputError(f"{file}: column 'text' must hold strings, found {text}")
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not (any(fits(vector) for fits in lists) and pa.types.is_floating(vector.value_type)):
        raise InputError(f"{file}: column 'vector' must hold lists of floats, found {vector}")


def _check_texts(file: str, first: int, texts: pa.Array) -> int:
    """Check how long each text is; return how many bytes all of them have."""
    lengths = pc.binary_length(texts).fill_null(0).to_numpy()
    row = int(lengths.argmax())
    check_row(file, first + row, int(lengths[row]), "row")
    return int(lengths.sum(dtype=np.int64))


def _to_rows(file: str, first: int, batch: pa.RecordBatch, width: int | None) -> Rows:
    texts, lists = batch["text"], batch["vector"]
    _check(file, first, texts.is_valid(), "no text")
    widths = pc.list_value_length(lists).fill_null(0)
    _check(file, first, pc.greater(widths, 0), "no vector")
    width = width or widths[0].as_py()
    _check(file, first, pc.equal(widths, width), f"the vector must have {width} numbers, as in the first row")
    numbers = pc.list_flatten(lists).to_numpy(zero_copy_only=False).astype(np.float64).reshape(-1, width)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("nd,nd->n", numbers, numbers)
    _check(file, first, pa.array(np.isfinite(squares)), "a number is NaN, infinite, missing or too large")
    vectors = unit(numbers).astype(np.float16)
    return Rows(file=file, first=first, texts=texts.to_pylist(), vectors=vectors)


def _check(file: str, first: int, good: pa.BooleanArray, fault: str) -> None:
    """Raise InputError naming the first row that is not ``good``."""
    row = pc.index(good, False).as_py()
    if row >= 0:
        raise InputError(f"{file}: row {first + row}: {fault}; correct the row or remove it")


def rows_at_once(file: str, table: pq.ParquetFile) -> int:
    """Return how many rows hold at most ``_BYTES`` of texts, whichever of a dictionary each of them repeats.

    Raises:
        InputError: texts take far more memory than the file has bytes.
    """
    texts = list(chunks(table, ["text"]))
    check_size(file, sum(column.total_uncompressed_size for column in texts))
    longest = max((_longest(file, column) for column in texts), default=0)
    return min(_ROWS, max(1, _BYTES // max(longest, 1)))


def check_size(file: str, size: int) -> None:
    """Check how many bytes the texts of a file take.

    Raises:
        InputError: they are far more than those of the file.
    """
    if size > (most := most_bytes(file)):
        raise InputError(
            f"{file}: texts take more than {most:,} bytes, {MOST_TIMES} times its size; remove rows that repeat a text"
        )


def _longest(file: str, column: pq.ColumnChunkMetaData) -> int:
    """Return how long the longest text may be that takes less of the file whenever it is repeated."""
    if "DELTA_BYTE_ARRAY" in column.encodings:  # each text says how much of the one before it repeats
        return int(column.total_uncompressed_size)
    told = column.has_dictionary_page  # older writers do not tell of one, which is then the first page of data
    with Path(file).open("rb") as content:
        content.seek(max(column.dictionary_page_offset if told else column.data_page_offset, 0))
        header = content.read(_HEADER_BYTES)
    if header.startswith(_DICTIONARY):
        return _number(header[len(_DICTIONARY) :])
    return int(column.total_uncompressed_size) if told else 0


def _number(content: bytes) -> int:
    """Return the number that seven bits of each byte make, up to the first byte below 128; its last bit is a sign."""
    number = 0
    for place, byte in enumerate(content):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return number >> 1
