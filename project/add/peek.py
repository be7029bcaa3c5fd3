"""The first values of a source's columns, and whether the first line of a CSV file has their names at all."""

import itertools
import re
import statistics
from collections.abc import Iterator, Sequence

import pyarrow as pa

from batchwright.core.errors import InputError
from batchwright.core.untrusted_arrow import open_parquet, values_of
from batchwright.core.untrusted_text import parse_json
from pipelines.files import find_files, open_text, readable
from pipelines.ingest.sources.columnar import open_ipc
from pipelines.ingest.sources.csv import delimiter_of, first_records, numbered
from pipelines.ingest.sources.huggingface import HuggingFaceSource
from pipelines.ingest.sources.jsonl import read_objects
from pipelines.ingest.sources.labels import number_of
from project.add.columns import Table
from project.add.kinds import Entry, with_jq
from project.add.values import are_texts
from project.add.words import is_known

PEEKED = 1000
"""Rows that are looked at."""
_UNDECODED = re.compile("[\udc80-\udcff]")
"""What bytes become that are not UTF-8."""
_ENDS = "\uff1f\u3002\uff01"
"""Ends of Chinese and Japanese sentences."""
_TITLES = 5
"""Lines that may stand above the header."""
_EMPTY = "is empty; write rows into it, or leave it out"
_WORDS, _LONG = 5, 60
"""A name of so many words or characters is a text."""


def peek(entry: Entry) -> Table:
    """Return the first values of each column of the source's first file, and of those that only others have.

    Raises:
        InputError: there is no such file, or one cannot be read.
    """
    if entry["kind"] == "huggingface":
        source = HuggingFaceSource(**entry, domain="-")
        return _values(source.label, source.batches(source.load().column_names, 0, PEEKED))
    table: Table = {}
    for file in find_files(entry["path"]):
        table = _columns(entry, file) | table
    return table


def _columns(entry: Entry, file: str) -> Table:
    if entry["kind"] == "jsonl":
        return _objects(file)
    if entry["kind"] == "csv":
        header, records = _records(entry, file)
        _check_repeated(file, header)
        return {column: [record[number] for record in records] for number, column in enumerate(header)}
    return _values(file, _parquet(file) if entry["kind"] == "parquet" else _arrow(file))


def _check_repeated(file: str, header: Sequence[str]) -> None:
    """Raise InputError if two columns that may be sides have the same name, so that only one of them could be meant."""
    for name in header:
        if header.count(name) > 1 and is_known(name):
            raise InputError(f"{file}: has two columns '{name}'; rename one")


def text_in_header(entry: Entry) -> str | None:
    """Return a name of a column that looks like one of its values, which a first line without names would be.

    Raises:
        InputError: one of the next lines has names that are known, so that the first is a title above them.
    """
    header, records = _records(entry, find_files(entry["path"])[0])
    known = sum(map(is_known, header))
    if known > 1 or not records or not entry.get("header", True):
        return None
    if names := next((record for record in records[:_TITLES] if sum(map(is_known, record)) > 1), None):
        raise _above(entry["path"], names)
    columns = list(zip(header, zip(*records, strict=True), strict=True))
    for name, values in columns:
        if _is_a_value(name, values):
            return name
    texts = [(name, values) for name, values in columns if are_texts(values)]
    alike = all(2 * len(name) >= statistics.median(map(len, values)) for name, values in texts)
    return texts[0][0] if texts and alike and not known else None


def _above(file: str, names: Sequence[str]) -> InputError:
    return InputError(
        f"{file}: the first line stands above the names of the columns, {', '.join(names)}; remove it, or say which "
        "columns it names: --query and --document"
    )


def _is_a_value(name: str, values: Sequence[str]) -> bool:
    if name.strip() in {value.strip() for value in values} - {""}:
        return True
    if number_of(name) is not None:
        return 2 * sum(number_of(value) is not None for value in values) > len(values)
    count, end = len(name.split()), name.strip()[-1:] or " "
    return count >= _WORDS or len(name) > _LONG or end in _ENDS or (count > 2 and end in ("?", ".", "!"))


def _records(entry: Entry, file: str) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns of a CSV file, and its first records with as many fields."""
    first, *others = first_records(file, entry.get("delimiter") or delimiter_of(file), PEEKED) or [[]]
    if not first:
        raise InputError(f"{file}: {_EMPTY}")
    if _UNDECODED.search("".join(first)):
        raise InputError(f"{file}: the first line is not UTF-8; convert the file to UTF-8")
    fitting = [record for record in others if len(record) == len(first)]
    if entry.get("header", True) and first and not others:
        raise InputError(
            f"{file}: no row after the first line can be read; add rows, or double the quotation marks inside fields"
        )
    if others and not fitting and sum(map(is_known, others[0])) > 1:
        raise _above(file, others[0])
    if others and not fitting:
        raise InputError(
            f"{file}: the first line has {len(first)} fields, the next {len(others[0])}; put quotation marks around "
            "fields that hold the character between fields, without a space before them"
        )
    return (first, fitting) if entry.get("header", True) else (numbered(first), [first, *fitting])


def _values(name: str, batches: Iterator[pa.RecordBatch]) -> Table:
    with readable(name):
        batch = next((batch for batch in batches if len(batch)), None)
        if batch is None:
            raise InputError(f"{name}: {_EMPTY}")
        return dict(zip(batch.schema.names, values_of(name, batch.slice(0, PEEKED), 1), strict=True))


def _objects(file: str) -> Table:
    table: Table = {}
    wrong = ""
    with open_text(file) as text:
        for number, values in itertools.islice(read_objects(file, text), PEEKED):
            if isinstance(values, dict):
                for column, value in values.items():
                    table.setdefault(column, []).append(value)
            elif str(values.query).startswith("["):
                _refuse_array(file, str(values.query))
            elif str(values.query).strip() == "{":
                raise InputError(f"{file}: has objects of several lines; write one object a line: {with_jq('.', file)}")
            else:
                wrong = wrong or f"line {number}: {values.fault}"
    if not table:
        raise InputError(f"{file}: {wrong or 'is empty'}; write one JSON object a line")
    return table


def _refuse_array(file: str, line: str) -> None:
    if _of_ids(line):
        raise InputError(
            f"{file}: has arrays of numbers, in whose place texts must stand; look up the texts of these ids"
        )
    whole = line.strip() == "[" or line.lstrip("[ ").startswith("{")
    objects = ".[]" if whole else f"{{query: .[0], document: .[1]{_further(line)}}}"
    what = "is a JSON array" if whole else "has an array on each line"
    raise InputError(f"{file}: {what}; write one object a line: {with_jq(objects, file)}")


def _of_ids(line: str) -> bool:
    return re.fullmatch(r"\[[\d\s,]+\]", line.strip()) is not None


def _further(line: str) -> str:
    """What an array has after query and document: hard negatives, or a label."""
    try:
        values = parse_json(line)[2:]
    except (ValueError, RecursionError, TypeError):
        return ""
    if values and all(isinstance(value, str) for value in values):
        return ", negatives: .[2:]"
    return ", label: .[2]" if values else ""


def _arrow(file: str) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(file) as source:
        yield from open_ipc(file, source)[1]


def _parquet(file: str) -> Iterator[pa.RecordBatch]:
    with open_parquet(file) as handle:
        yield from handle.iter_batches(PEEKED)
