"""Parquet files, read one row group at a time; a part is a range of them."""

from collections.abc import Iterator
from typing import Literal

import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from batchwright.core.untrusted_arrow import chunks, open_parquet
from pipelines.files import most_bytes, readable
from pipelines.ingest.sources.arrays import batch_rows
from pipelines.ingest.sources.base import Part, Row
from pipelines.ingest.sources.columns import FileSource

_PART_ROWS = 8192
_BATCH_ROWS, _BATCH_BYTES = 4096, 256 << 20


class ParquetSource(FileSource):
    """Parquet files; rows are numbered from 1 in each file."""

    kind: Literal["parquet"]

    def parts(self) -> list[Part]:
        parts = []
        for file, _ in super().parts():
            with readable(file), pq.ParquetFile(file) as table:
                self.check_columns(file, table.schema_arrow.names)
                if table.metadata.num_rows == 0:
                    raise InputError(f"{file}: has no rows; add rows or remove it from 'ingest.sources'")
                parts += [Part(file, piece) for piece in range(len(_pieces(_counts(table))))]
        return parts

    def size_of(self, file: str) -> float:
        with readable(file), pq.ParquetFile(file) as table:
            size = sum(chunk.total_uncompressed_size for chunk in chunks(table, self.wanted_columns))
            return float(min(size, most_bytes(file)))

    def rows(self, part: Part) -> Iterator[Row]:
        with readable(part.name), open_parquet(part.name, self.wanted_columns) as table:
            counts = _counts(table)
            groups = _pieces(counts)[part.piece]
            first = 1 + sum(counts[: groups.start])
            for number in groups:
                group = table.metadata.row_group(number)
                rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES * group.num_rows // max(group.total_byte_size, 1)))
                for batch in table.iter_batches(rows, row_groups=[number], columns=self.wanted_columns):
                    yield from batch_rows(self, part.name, batch, first)
                    first += len(batch)


def _counts(table: pq.ParquetFile) -> list[int]:
    """Rows of each row group."""
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
