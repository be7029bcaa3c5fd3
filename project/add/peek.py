"""Read the first rows of a table."""

import itertools
from collections.abc import Iterator

import pyarrow as pa

from batchwright.core.errors import InputError
from batchwright.core.untrusted_arrow import open_parquet, values_of
from pipelines.files import find_files, open_text, readable
from pipelines.ingest.sources.columnar import open_ipc
from pipelines.ingest.sources.csv import delimiter_of, first_records
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
        return _values(source.label, source.batches(source.load().column_names, 0, SAMPLE))
    file = find_files(entry["path"])[0]
    if entry["kind"] == "jsonl":
        return _objects(file)
    if entry["kind"] == "csv":
        header, *records = first_records(file, entry.get("delimiter") or delimiter_of(file), SAMPLE) or [[]]
        return {column: list(values) for column, values in zip(header, zip(*records, strict=False), strict=False)}
    return _values(file, _parquet(file) if entry["kind"] == "parquet" else _arrow(file))


def _values(name: str, batches: Iterator[pa.RecordBatch]) -> Table:
    with readable(name):
        batch = next(batches, None)
        return (
            {}
            if batch is None
            else dict(zip(batch.schema.names, values_of(name, batch.slice(0, SAMPLE), 1), strict=True))
        )


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


def _arrow(file: str) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(file) as source:
        yield from open_ipc(file, source)[1]


def _parquet(file: str) -> Iterator[pa.RecordBatch]:
    with open_parquet(file) as handle:
        yield from handle.iter_batches(SAMPLE)
