"""Arrow IPC files and streams, read one record batch at a time."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa

from batchwright.core.errors import InputError
from pipelines.files import most_bytes, readable
from pipelines.ingest.sources.arrays import batch_rows
from pipelines.ingest.sources.base import Part, Row
from pipelines.ingest.sources.columns import FileSource
from pipelines.ingest.sources.files import check_decompressed
from pipelines.ingest.sources.ipc import decompressed_sizes, messages_of_file
from pipelines.ingest.sources.sizes import bounded

_FILE_MARK = b"ARROW1"


class ArrowSource(FileSource):
    """Arrow IPC files and streams; rows are numbered from 1 in each file."""

    kind: Literal["arrow"]

    def rows(self, part: Part) -> Iterator[Row]:
        first = 1
        with readable(part.name), pa.memory_map(part.name) as source:
            for batch in self._batches(part.name, source):
                yield from batch_rows(self, part.name, batch, first)
                first += len(batch)
        if first == 1:
            raise InputError(f"{part.name}: has no rows; add rows or remove it from 'ingest.sources'")

    def size_of(self, file: str) -> float:
        with suppress(InputError), readable(file), pa.memory_map(file) as source:  # whoever reads it says what is wrong
            return bounded(file, _open(file, source)[1])
        return bounded(file, 0)

    def _batches(self, file: str, source: pa.MemoryMappedFile) -> Iterator[pa.RecordBatch]:
        columns, batches = open_ipc(file, source)
        self.check_columns(file, columns)
        yield from batches


def open_ipc(file: str, source: pa.MemoryMappedFile) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """Return the columns of an Arrow IPC file or stream, and its record batches.

    Raises:
        InputError: the compressed buffers become too large.
    """
    reader, size = _open(file, source)
    check_decompressed(file, size, most_bytes(file))
    is_file = isinstance(reader, pa.RecordBatchFileReader)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
    return reader.schema.names, batches


def _open(file: str, source: pa.MemoryMappedFile) -> tuple[Any, int]:
    """Return the reader of an Arrow IPC file or stream, and how many bytes its compressed buffers become."""
    is_file = source.read(len(_FILE_MARK)) == _FILE_MARK
    source.seek(0)
    reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
    with pa.memory_map(file) as again:
        messages = messages_of_file(again) if is_file else pa.ipc.MessageReader.open_stream(again)
        return reader, sum(decompressed_sizes(messages))
