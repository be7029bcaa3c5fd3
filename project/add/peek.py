"""Read the first rows of a table."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from batchwright.core.untrusted import values_of
from pipelines.files import find_files, readable
from pipelines.ingest.sources.arrow import open_ipc
from pipelines.ingest.sources.csv_shape import delimiter_of, first_records
from pipelines.ingest.sources.files import open_text
from pipelines.ingest.sources.huggingface import HuggingFaceSource
from pipelines.ingest.sources.jsonl import read_objects
from project.add.kinds import Entry

Table = dict[str, list[object]]
"""The first values of each column."""

SAMPLE = 200


def peek(entry: Entry) -> Table:
    """Return the first values of each column of the source's first file.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    if entry["kind"] == "huggingface":
        source = HuggingFaceSource(**entry, domain="-")
        return dict(source.load()[:SAMPLE])
    file = find_files(entry["path"])[0]
    if entry["kind"] == "jsonl":
        return _objects(file)
    if entry["kind"] == "csv":
        header, *records = first_records(file, entry.get("delimiter") or delimiter_of(file), SAMPLE)
        return {column: list(values) for column, values in zip(header, zip(*records, strict=False), strict=False)}
    with readable(file):
        batch = _parquet(file) if entry["kind"] == "parquet" else _arrow(file)
        values = [] if batch is None else values_of(file, batch.slice(0, SAMPLE), 1)
        return dict(zip([] if batch is None else batch.schema.names, values, strict=True))


def _objects(file: str) -> Table:
    table: Table = {}
    with open_text(file) as text:
        for _, values in itertools.islice(read_objects(file, text), SAMPLE):
            if isinstance(values, dict):
                for column, value in values.items():
                    table.setdefault(column, []).append(value)
            elif str(values.query).startswith("["):
                raise InputError(f"{file}: is a JSON array; write one object a line: jq -c '.[]' {file} > pairs.jsonl")
    return table


def _arrow(file: str) -> pa.RecordBatch | None:
    with pa.memory_map(file) as source:
        return next(open_ipc(file, source)[1], None)


def _parquet(file: str) -> pa.RecordBatch | None:
    with pq.ParquetFile(file) as handle:
        return next(handle.iter_batches(SAMPLE), None)
