"""Reads Parquet files with the columns ``text`` and ``vector``, one batch of rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.untrusted_text import check_row
from pipelines.embed.ahead import ahead
from pipelines.embed.at_once import check_size, rows_at_once
from pipelines.files import readable


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
        lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    _check(file, first, pa.array(np.isfinite(lengths[:, 0])), "a number is NaN, infinite, missing or too large")
    vectors = (numbers / np.where(lengths > 0, lengths, 1)).astype(np.float16)
    return Rows(file=file, first=first, texts=texts.to_pylist(), vectors=vectors)


def _check(file: str, first: int, good: pa.BooleanArray, fault: str) -> None:
    """Raise InputError naming the first row that is not ``good``."""
    row = pc.index(good, False).as_py()
    if row >= 0:
        raise InputError(f"{file}: row {first + row}: {fault}; correct the row or remove it")
