"""Looks up in the messages of an Arrow IPC file what its compressed buffers become, before Arrow makes room for them.

A file of 130 kB can hold a column of 4 GiB. PyArrow has no option that limits it, and validates only what is in memory.

A message is a table of FlatBuffers, and its body. Arrow has verified the tables whose fields are looked up here.
"""

import struct
from collections.abc import Iterable, Iterator

import pyarrow as pa

_TABLE, _VECTOR, _SHORT, _LONG = struct.Struct("<i"), struct.Struct("<I"), struct.Struct("<H"), struct.Struct("<q")
_HEADER_TYPE, _HEADER = 1, 2
_DATA = 1
_BUFFERS, _COMPRESSION = 2, 3
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_FIRST_COMPRESSION = b"ARROW:experimental_compression"
"""How the first files with compressed buffers said so."""


def messages_of_file(source: pa.NativeFile) -> Iterator[pa.ipc.Message]:
    """Yield the messages that the footer of an Arrow IPC file names."""
    source.seek(source.size() - 10)
    (size,) = _TABLE.unpack(source.read(4))
    source.seek(source.size() - 10 - size)
    footer = source.read(size)
    for field in (_FOOTER_DICTIONARIES, _FOOTER_BATCHES):
        for place, _, _ in _structs(footer, _field(footer, _root(footer), field), "<qi4xq"):
            source.seek(place)
            yield pa.ipc.read_message(source)


def decompressed_sizes(messages: Iterable[pa.ipc.Message]) -> Iterator[int]:
    """Yield for each message how many bytes its compressed buffers say that they become."""
    for message in messages:
        content = message.metadata.to_pybytes()
        batch = _batch(content)
        compressed = _field(content, batch, _COMPRESSION) or _FIRST_COMPRESSION in content
        buffers = _structs(content, _field(content, batch, _BUFFERS), "<qq") if batch and compressed else ()
        yield sum(_size(message.body, start, length) for start, length in buffers)


def _batch(content: bytes) -> int:
    """Return where the record batch in a message is, or 0 if there is none."""
    message = _root(content)
    kind, header = (_field(content, message, number) for number in (_HEADER_TYPE, _HEADER))
    if not (kind and header) or content[kind] not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return 0
    batch = _follow(content, header)
    if content[kind] == _RECORD_BATCH:
        return batch
    data = _field(content, batch, _DATA)
    return data and _follow(content, data)


def _size(body: pa.Buffer, start: int, length: int) -> int:
    """Return the length that precedes a compressed buffer; -1 precedes one that is not compressed after all."""
    if length < _LONG.size or not 0 <= start <= body.size - _LONG.size:
        return 0
    return max(0, int(_LONG.unpack(body.slice(start, _LONG.size))[0]))


def _root(content: bytes) -> int:
    return _follow(content, 0)


def _follow(content: bytes, place: int) -> int:
    return place + int(_VECTOR.unpack_from(content, place)[0])


def _field(content: bytes, table: int, number: int) -> int:
    """Return where a field of a table is, or 0 if the table, or the field in it, is not there."""
    if not table:
        return 0
    fields = table - _TABLE.unpack_from(content, table)[0]
    place = 2 * (2 + number)
    if place >= _SHORT.unpack_from(content, fields)[0]:
        return 0
    offset = int(_SHORT.unpack_from(content, fields + place)[0])
    return offset and table + offset


def _structs(content: bytes, field: int, layout: str) -> Iterator[tuple[int, ...]]:
    """Yield the members of a field that is a vector."""
    if field:
        vector = _follow(content, field)
        (count,) = _VECTOR.unpack_from(content, vector)
        size = struct.calcsize(layout)
        for number in range(count):
            yield struct.unpack_from(layout, content, vector + _VECTOR.size + number * size)
