"""Parquet files, read one row group at a time."""

from collections.abc import Iterator
from typing import Literal

import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from batchwright.core.untrusted import chunks, open_parquet
from pipelines.files import most_bytes, readable
from pipelines.ingest.sources.arrays import batch_rows
from pipelines.ingest.sources.base import Part, Row
from pipelines.ingest.sources.columns import FileSource

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
                parts += [Part(file, group) for group in range(table.num_row_groups)]
        return parts

    def size_of(self, file: str) -> float:
        with readable(file), pq.ParquetFile(file) as table:
            size = sum(chunk.total_uncompressed_size for chunk in chunks(table, self.wanted_columns))
            return float(min(size, most_bytes(file)))

    def rows(self, part: Part) -> Iterator[Row]:
        with readable(part.name), open_parquet(part.name, self.wanted_columns) as table:
            first = 1 + sum(table.metadata.row_group(group).num_rows for group in range(part.piece))
            group = table.metadata.row_group(part.piece)
            rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES * group.num_rows // max(group.total_byte_size, 1)))
            for batch in table.iter_batches(rows, row_groups=[part.piece], columns=self.wanted_columns):
                yield from batch_rows(self, part.name, batch, first)
                first += len(batch)
