"""Arrow record batches as raw rows."""

from collections.abc import Iterator

import pyarrow as pa

from pipelines.ingest.sources.base import Row
from pipelines.ingest.sources.columns import TableSource


def batch_rows(source: TableSource, name: str, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
    """The rows of ``batch``, whose first is row number ``first`` of the table ``name``."""
    columns = {name: _values(batch.column(name)) for name in source.wanted_columns}
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        yield source.to_row(name, first + index, dict(zip(columns, values, strict=True)))


def _values(column: pa.Array) -> list[object]:
    # Arrow checks neither text nor offsets that it reads. As bytes, text that is not UTF-8 costs only its own
    # row; offsets of a damaged file would lead out of memory.
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
