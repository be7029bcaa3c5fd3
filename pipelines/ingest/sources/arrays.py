"""Turns Arrow record batches into raw rows."""

from collections.abc import Iterator

import pyarrow as pa

from batchwright.core.untrusted import values_of
from pipelines.ingest.sources.base import Row
from pipelines.ingest.sources.columns import TableSource


def batch_rows(source: TableSource, name: str, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
    """Yield the rows of ``batch``, which starts at row number ``first`` of the table ``name``."""
    columns = {name: values_of(batch.column(name)) for name in source.wanted_columns}
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        yield source.to_row(name, first + index, dict(zip(columns, values, strict=True)))
