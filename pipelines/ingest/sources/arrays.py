"""Turns Arrow record batches into raw rows."""

from collections.abc import Iterator

import pyarrow as pa

from batchwright.core.untrusted_arrow import values_of
from pipelines.ingest.sources.base import Row
from pipelines.ingest.sources.columns import TableSource


def batch_rows(source: TableSource, name: str, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
    """Yield the rows of ``batch``, which starts at row number ``first`` of the table ``name``."""
    columns = values_of(name, batch.select(source.wanted_columns), first)
    for number, values in enumerate(zip(*columns, strict=True), start=first):
        yield source.to_row(name, number, dict(zip(source.wanted_columns, values, strict=True)))
