"""Read the rows of CSV, TSV, JSON Lines and Parquet files of judgements."""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from batchwright.core.errors import InputError
from batchwright.core.untrusted_arrow import open_parquet, values_of
from batchwright.core.untrusted_text import Lines, Records, parse_json

TEXTS = ("query", "document")
VALUES = ("label", "score")
VERDICT = "verdict"
"""The column of what ``batchwright export --doubtful`` asks for. With it, ``score`` is the surrogate's."""
_COLUMNS = (*TEXTS, *VALUES, VERDICT)
_BATCH_ROWS = 4096

Row = tuple[str, dict[str, Any]]
"""Where a row is, for messages, and its values by column. Rows count from 1, and are line numbers in text files."""


def judgement_rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a file, with the columns query, document and verdict, label or score at least.

    Raises:
        InputError: the file or a row cannot be read, there is no row, or a column is missing or there twice; the
            message names file and row.
    """
    readers = {".csv": _separated, ".tsv": _separated, ".jsonl": _json_lines, ".parquet": _parquet}
    if file.suffix not in readers:
        raise InputError(f"{file}: judgements are read from {', '.join(sorted(readers))}; save it as one of them")
    try:
        found = False
        for row in readers[file.suffix](file):
            found = True
            yield row
        if not found:
            raise InputError(f"{file}: holds no judgements; add some, or remove it from filter.judgements")
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; correct filter.judgements") from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(f"{file}: cannot be read ({str(error).strip().splitlines()[0]}); save it again") from None


@contextmanager
def _lines(file: Path) -> Iterator[Lines]:
    with file.open("rb") as content, Lines(str(file), content, encoding="utf-8-sig") as text:
        yield text


def _separated(file: Path) -> Iterator[Row]:
    with _lines(file) as text:
        records = Records(str(file), text, delimiter="\t" if file.suffix == ".tsv" else ",", strict=True)
        try:
            header = next(records, [])
            _check(str(file), header)
            for fields in filter(None, records):
                place = f"{file}: row {records.first}"
                if len(fields) != len(header):
                    raise InputError(f"{place}: more or fewer fields than the header; quote or add fields")
                yield place, dict(zip(header, fields, strict=True))
        except csv.Error as error:
            raise InputError(f"{file}: row {records.first}: {error}; correct the quotation marks") from None


def _json_lines(file: Path) -> Iterator[Row]:
    with _lines(file) as text:
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{file}: row {number}: not valid JSON ({error}); correct this line") from None
            if not isinstance(row, dict):
                raise InputError(f"{file}: row {number}: not a JSON object; write one object per line")
            _check(f"{file}: row {number}", row)
            yield f"{file}: row {number}", row


def _parquet(file: Path) -> Iterator[Row]:
    with open_parquet(file, _COLUMNS) as table:
        _check(str(file), names := table.schema_arrow.names)
        first = 1
        for batch in table.iter_batches(_BATCH_ROWS, columns=[name for name in _COLUMNS if name in names]):
            columns = values_of(str(file), _without_decimals(batch), first, "strict")
            for number, values in enumerate(zip(*columns, strict=True), start=first):
                yield f"{file}: row {number}", dict(zip(batch.schema.names, values, strict=True))
            first += len(batch)


def _without_decimals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose label or score is the text of a number if it was a decimal, which is foreign elsewhere."""
    for place, (name, kind) in enumerate(zip(batch.schema.names, batch.schema.types, strict=True)):
        if name in VALUES and pa.types.is_decimal(kind):
            batch = batch.set_column(place, name, batch.column(place).cast(pa.string()))
    return batch


def _check(place: str, columns: Iterable[str]) -> None:
    """Raise InputError unless the columns are there once, and verdict or just one of label and score."""
    found = list(columns)
    for name in _COLUMNS:
        if found.count(name) > 1:
            raise InputError(f"{place}: has two columns '{name}'; rename one")
    for name in TEXTS:
        if name not in found:
            raise InputError(f"{place}: no column '{name}'; columns found: {', '.join(found) or 'none'}")
    if VERDICT not in found and sum(name in found for name in VALUES) != 1:
        raise InputError(
            f"{place}: needs a column 'label' or a column 'score', not both, or a column '{VERDICT}'; rename or remove "
            "columns"
        )
