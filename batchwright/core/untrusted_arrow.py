"""Columns of Arrow and Parquet files from outside, which are checked before their values are used."""

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.untrusted_text import check_row

MOST_BYTES = 1 << 30
"""What the values of a column may take of the memory, unless the file itself holds as many bytes."""
_ITEM = 8
"""The bytes that a row of a column and an item of a list take at least, even those that take none of the file."""
_SMALLER = "write the file with smaller row groups or record batches"
_RAW = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def open_parquet(file: str | Path, columns: Collection[str] | None = None) -> pq.ParquetFile:
    """Open a file whose texts stay in dictionaries: a text that is there a thousand times takes the memory of one.

    ``columns`` are those that are read; None means all.
    """
    with pq.ParquetFile(file) as table:
        metadata = table.metadata
        leaves = [table.schema.column(number) for number in range(len(table.schema))]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"]
    wanted = [path for path in texts if columns is None or _is_below(path, columns)]
    return pq.ParquetFile(file, metadata=metadata, read_dictionary=wanted)  # metadata of many row groups take long


def chunks(table: pq.ParquetFile, columns: Collection[str]) -> Iterator[pq.ColumnChunkMetaData]:
    """Yield what a file says about these columns in each row group that has rows."""
    paths = [table.schema.column(number).path for number in range(len(table.schema))]
    wanted = [number for number, path in enumerate(paths) if _is_below(path, columns)]
    for group in range(table.num_row_groups):
        # An exception in ``column`` would end the process; where there is one, reading a row raises it, too.
        for _ in islice(table.iter_batches(1, row_groups=[group], columns=list(columns)), 1):
            yield from map(table.metadata.row_group(group).column, wanted)


def _is_below(path: str, columns: Collection[str]) -> bool:
    return any(f"{path}.".startswith(f"{name}.") for name in columns)


def values_of(file: str, batch: pa.RecordBatch, first: int, errors: str = "surrogateescape") -> list[list[object]]:
    """Return the values of each column of rows of a file, of which ``first`` is the number of the first.

    Those that are neither text nor numbers, nor made of them, become tuples; those with named fields, dictionaries;
    decimal numbers, floating-point ones.
    ``errors`` says what becomes of text that is not UTF-8, as in ``bytes.decode``.

    Raises:
        InputError: a row, or all rows together, would take too much memory, or a column's type is unknown.
        pa.ArrowException: a column refers to what lies outside of it.
    """
    values, sizes = [], np.zeros(len(batch), np.int64)
    for column in _columns(file, batch):
        try:
            checked = _checked(column)
        except pa.ArrowCapacityError as error:
            raise InputError(f"{file}: row {first} and those after it: {error}; {_SMALLER}") from None
        sizes += _sizes(checked)
        if len(sizes):
            check_row(file, first + int(np.argmax(sizes)), int(sizes.max()), "row")
        found = checked.to_pylist()
        if _foreign(column.type):  # not a list: a list may be one of hard negatives
            values.append([value and tuple(value) for value in found])
        else:
            values.append([_decode(value, errors) for value in found])
    return values


def printed(batch: pa.RecordBatch, columns: Collection[str | None]) -> pa.RecordBatch:
    """Return rows with the dates, times and decimal numbers of some columns as text.

    Raises:
        pa.ArrowException: a column refers to what lies outside of it, or has an unknown time zone.
    """
    for place, field in enumerate(batch.schema):
        if field.name in columns and (pa.types.is_temporal(field.type) or pa.types.is_decimal(field.type)):
            batch.column(place).validate()
            batch = batch.set_column(place, field.name, batch.column(place).cast(pa.string()))
    return batch


def _columns(file: str, batch: pa.RecordBatch) -> list[pa.Array]:
    try:
        columns: list[pa.Array] = batch.columns
    except KeyError:
        raise InputError(f"{file}: a column has a type that PyArrow does not know; write it as text") from None
    return columns


def _foreign(kind: pa.DataType) -> bool:
    """Whether values of this type are neither text nor numbers, nor made of them."""
    ours = [pa.types.is_dictionary, pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list]
    ours += [pa.types.is_decimal, _is_object]
    if kind in _RAW or kind in _RAW.values() or any(is_one(kind) for is_one in ours):
        return False
    return pa.types.is_temporal(kind) or not (pa.types.is_primitive(kind) or pa.types.is_null(kind))


def _is_object(kind: pa.DataType) -> bool:
    """Whether values of this type have named fields, as those of a dictionary in Python have."""
    return bool(pa.types.is_struct(kind)) and len({field.name for field in kind}) == kind.num_fields > 0


def _checked(column: pa.Array) -> pa.Array:
    """Return a column with bytes instead of text, after checking that all it refers to lies inside of it.

    Arrow validates neither text nor offsets, views and dictionary indices when it reads: those of a damaged or hostile
    file may point outside the buffers, which must be seen before anything is cast or copied. Read as bytes, text that
    is not UTF-8 rejects only its own row.
    """
    column.validate()
    _check_size(column, _ITEM * len(column))
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
    if _is_object(kind):
        fields = [_checked(field) for field in column.flatten()]
        return pa.StructArray.from_arrays(fields, [field.name for field in kind], mask=column.is_null())
    if _foreign(kind):
        return _untouched(column)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if raw := _RAW.get(kind):
        column = column.view(raw)
    column.validate(full=True)
    return _copied(column) if column.type == pa.binary_view() else column


def _untouched(column: pa.Array) -> pa.Array:
    """Return lists that name the column's type in place of its values, which are not text whatever they are.

    Python has no dates before the year 1 and no unknown time zones, so that not all values can be had.
    """
    _check_size(column, _ITEM * len(column))
    named = pa.array([[f"a value of type {column.type}"]] * len(column), pa.list_(pa.string()))
    return pc.if_else(column.is_valid(), named, pa.scalar(None, named.type))


def _looked_up(column: pa.DictionaryArray) -> pa.Array:
    values, indices = _checked(column.dictionary), column.indices
    indices.validate(full=True)
    _check_size(column, pc.sum(pa.array(_sizes(values)).take(indices)).as_py() or 0)
    return values.take(indices)


def _copied(views: pa.Array) -> pa.Array:
    """Return the texts of views, of which many may show the same bytes, one after the other."""
    if len(views):
        lengths = np.frombuffer(views.buffers()[1], np.int32, 4 * len(views), 16 * views.offset)[::4]
        _check_size(views, int(lengths[views.is_valid().to_numpy(zero_copy_only=False)].sum(dtype=np.int64)))
    return views.cast(pa.large_binary())


def _sizes(values: pa.Array) -> NDArray[np.int64]:
    """Return how many bytes of text and of items of lists each of the checked values has."""
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = values.offsets.to_numpy()
        until = np.append(0, np.cumsum(_sizes(values.values) + _ITEM))
        return np.asarray(until[offsets[1:]] - until[offsets[:-1]])
    if pa.types.is_fixed_size_list(kind):
        items = _sizes(values.values.slice(values.offset * kind.list_size, len(values) * kind.list_size))
        return np.asarray((items + _ITEM).reshape(len(values), kind.list_size).sum(axis=1))
    if pa.types.is_struct(kind):
        return np.asarray(sum(_sizes(field) + _ITEM for field in values.flatten()), np.int64)
    if kind in _RAW.values():
        return np.asarray(pc.binary_length(values).fill_null(0), np.int64)
    return np.zeros(len(values), np.int64)


def _check_size(column: pa.Array, size: int) -> None:
    most = max(MOST_BYTES, 2 * _held(column))  # an empty text has an offset of 4 bytes, and an item 8
    if size > most:
        raise pa.ArrowCapacityError(f"{len(column)} rows hold {size:,} bytes of text and lists, more than {most:,}")


def _held(column: pa.Array) -> int:
    """Return how many bytes of memory, or of a mapped file, there are of a column; a file's buffers may overlap."""
    places: list[tuple[int, int]] = [(buffer.address, buffer.size) for buffer in column.buffers() if buffer]
    span = max((start + size for start, size in places), default=0) - min(places, default=(0, 0))[0]
    return min(span, sum(size for _, size in places))


def _decode(value: object, errors: str) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors)
    if isinstance(value, dict):
        return {name: _decode(item, errors) for name, item in value.items()}
    return [_decode(item, errors) for item in value] if isinstance(value, list) else value
