"""Turns Arrow record batches into raw rows."""

from collections.abc import Iterator

import pyarrow as pa

from pipelines.ingest.sources.base import Row
from pipelines.ingest.sources.columns import TableSource


def batch_rows(source: TableSource, name: str, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
    """Yield the rows of ``batch``, which starts at row number ``first`` of the table ``name``."""
    columns = {name: _values(batch.column(name)) for name in source.wanted_columns}
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        yield source.to_row(name, first + index, dict(zip(columns, values, strict=True)))


def _values(column: pa.Array) -> list[object]:
    # Arrow validates neither text nor offsets when reading. Read as bytes, text that is not UTF-8 rejects only its
    # own row. Validation catches the offsets of a damaged file, which may point outside the buffer.
    values = column.cast(_as_bytes(column.type))
    values.validate(full=True)
    return [_decode(value) for value in values.to_pylist()]


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _as_bytes(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.large_list(_as_bytes(kind.value_type))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.large_binary()
    return kind


def _decode(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return [_decode(item) for item in value] if isinstance(value, list) else value
