"""Columnar files, read one record batch at a time: Arrow IPC and Parquet."""

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from batchwright.core.untrusted_arrow import open_parquet
from pipelines.files import check_decompressed, most_bytes, readable
from pipelines.ingest.sources.base import FileSource, Part, Row
from pipelines.ingest.sources.ipc import decompressed_sizes, messages_of_file

_ARROW_FILE = b"ARROW1"
_PART_ROWS = 8192
_BATCH_ROWS, _BATCH_BYTES = 4096, 256 << 20


class ArrowSource(FileSource):
    """Arrow IPC files and streams; rows are numbered from 1 in each file."""

    kind: Literal["arrow"] = "arrow"

    def rows(self, part: Part) -> Iterator[Row]:
        first = 1
        with readable(part.name), pa.memory_map(part.name) as source:
            columns, batches = open_ipc(part.name, source)
            self.check_columns(part.name, columns)
            for batch in batches:
                yield from self.batch_rows(part.name, batch, first)
                first += len(batch)
        if first == 1:
            raise InputError(f"{part.name}: has no rows; add rows or remove it from 'ingest.sources'")


def open_ipc(file: str, source: pa.MemoryMappedFile) -> tuple[list[str], Iterator[pa.RecordBatch]]:
    """Return the columns of an Arrow IPC file or stream, and its record batches.

    Raises:
        InputError: the compressed buffers become too large.
    """
    is_file = source.read(len(_ARROW_FILE)) == _ARROW_FILE
    source.seek(0)
    reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
    with pa.memory_map(file) as again:
        messages = messages_of_file(again) if is_file else pa.ipc.MessageReader.open_stream(again)
        check_decompressed(file, sum(decompressed_sizes(messages)), most_bytes(file))
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
    return reader.schema.names, batches


class ParquetSource(FileSource):
    """Parquet files; rows are numbered from 1 in each file."""

    kind: Literal["parquet"] = "parquet"

    def parts(self) -> list[Part]:
        parts = []
        for file, _ in super().parts():
            with readable(file), pq.ParquetFile(file) as table:
                self.check_columns(file, table.schema_arrow.names)
                if table.metadata.num_rows == 0:
                    raise InputError(f"{file}: has no rows; add rows or remove it from 'ingest.sources'")
                parts += [Part(file, piece) for piece in range(len(_pieces(_rows_of_groups(table))))]
        return parts

    def rows(self, part: Part) -> Iterator[Row]:
        with readable(part.name), open_parquet(part.name, self.wanted_columns) as table:
            counts = _rows_of_groups(table)
            groups = _pieces(counts)[part.piece]
            first = 1 + sum(counts[: groups.start])
            for number in groups:
                group = table.metadata.row_group(number)
                rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES * group.num_rows // max(group.total_byte_size, 1)))
                for batch in table.iter_batches(rows, row_groups=[number], columns=self.wanted_columns):
                    yield from self.batch_rows(part.name, batch, first)
                    first += len(batch)


def _rows_of_groups(table: pq.ParquetFile) -> list[int]:
    metadata = table.metadata
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def _pieces(counts: list[int]) -> list[range]:
    """Cut row groups of so many rows into ranges, each of which ends as soon as it has ``_PART_ROWS``."""
    pieces: list[range] = []
    start, rows = 0, 0
    for end, count in enumerate(counts, start=1):
        rows += count
        if rows >= _PART_ROWS or end == len(counts):
            pieces.append(range(start, end))
            start, rows = end, 0
    return pieces
