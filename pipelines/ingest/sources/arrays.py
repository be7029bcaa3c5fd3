"""Turns Arrow record batches into raw rows."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.ingest.sources.base import Row
from pipelines.ingest.sources.columns import TableSource


def batch_rows(source: TableSource, name: str, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
    """Yield the rows of ``batch``, which starts at row number ``first`` of the table ``name``."""
    columns = {name: _values(batch.column(name)) for name in source.wanted_columns}
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        yield source.to_row(name, first + index, dict(zip(columns, values, strict=True)))


def _values(column: pa.Array) -> list[object]:
    if _foreign(column.type):  # not a list: a list may be one of hard negatives
        return [value and tuple(value) for value in _untouched(column).to_pylist()]
    return [_decode(value) for value in _checked(column).to_pylist()]


def _foreign(kind: pa.DataType) -> bool:
    """Whether values of this type are neither text nor numbers, nor made of them."""
    made_of = [pa.types.is_dictionary, pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list]
    if kind in _RAW or kind in _RAW.values() or any(is_one(kind) for is_one in made_of):
        return False
    return pa.types.is_temporal(kind) or not (pa.types.is_primitive(kind) or pa.types.is_null(kind))


def _checked(column: pa.Array) -> pa.Array:
    """Return a column with bytes instead of text, after checking that all it refers to lies inside of it.

    Arrow validates neither text nor offsets, views and dictionary indices when it reads: those of a damaged or hostile
    file may point outside the buffers, which must be seen before anything is cast or copied. Read as bytes, text that
    is not UTF-8 rejects only its own row.
    """
    column.validate()
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _looked_up(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        child = _checked(column.values)
        offsets = column.offsets.cast(pa.int64())
        lists = pa.LargeListArray.from_arrays(offsets, child, mask=column.is_null())
        lists.validate(full=True)
        return lists
    if pa.types.is_fixed_size_list(kind):
        start, size = column.offset * kind.list_size, len(column) * kind.list_size
        child = _checked(column.values.slice(start, size))
        return pa.FixedSizeListArray.from_arrays(child, kind.list_size, mask=column.is_null())
    if _foreign(kind):
        return _untouched(column)
    if raw := _RAW.get(kind):
        column = column.view(raw)
    column.validate(full=True)
    return column


def _untouched(column: pa.Array) -> pa.Array:
    """Return lists that name the column's type in place of its values, which are not text whatever they are.

    Python has no dates before the year 1 and no unknown time zones, so that not all values can be had.
    """
    named = pa.array([[f"a value of type {column.type}"]] * len(column), pa.list_(pa.string()))
    return pc.if_else(column.is_valid(), named, pa.scalar(None, named.type))


_MOST_BYTES = 1 << 30
_RAW = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _looked_up(column: pa.DictionaryArray) -> pa.Array:
    values, indices = _checked(column.dictionary), column.indices
    indices.validate(full=True)
    if values.type in _RAW.values():
        length = pc.sum(pc.binary_length(values).take(indices).cast(pa.int64())).as_py() or 0
        if length > _MOST_BYTES:
            raise pa.ArrowInvalid(f"{len(indices)} rows hold {length:,} bytes of text, more than {_MOST_BYTES:,}")
    return values.take(indices)


def _decode(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return [_decode(item) for item in value] if isinstance(value, list) else value
