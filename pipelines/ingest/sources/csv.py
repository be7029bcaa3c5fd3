"""CSV and TSV, plain or compressed, and what the first lines say about the characters that they use."""

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

from pydantic import Field

from batchwright.core.errors import InputError
from batchwright.core.untrusted_text import Records
from pipelines.files import not_empty, open_text
from pipelines.ingest.sources.base import FileSource, Part, Row, faulty

_LINES = 1000
_DELIMITERS = "\t,;|^~\x01\x1f"
_SAID = re.compile(r' *"?sep *= *(.)"?(?:\1|\s)*', re.IGNORECASE)
"""The line before the header with which spreadsheets say what the delimiter is."""


class CsvSource(FileSource):
    """CSV and TSV, plain or compressed; rows are numbered by the line they begin on."""

    kind: Literal["csv"] = "csv"
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    """The character between fields; null means what a first line such as ``sep=;`` says, or else a tab in files named
    ``.tsv`` and a comma in all others."""
    header: bool = True
    """Whether the first line has the names of the columns; if not, they are 1, 2, 3 and so on."""
    quote: str | None = Field(default=None, max_length=1)
    """The character around fields; empty if quotation marks are ordinary characters. null means a quotation mark,
    unless fields are separated by tabs, each of the first 1,000 lines has as many as the header, and some field begins
    with a quotation mark but is not quoted."""

    def rows(self, part: Part) -> Iterator[Row]:
        first = "header" if self.header else "first row"
        with open_text(part.name) as text:
            records = self._records(part.name, text)
            number, header, raw = next(records, (1, None, []))
            if header is None:
                raise InputError(f"{part.name}: has no readable header line; put the column names in the first line")
            if not self.header:
                records = itertools.chain([(number, header, raw)], records)
                header = numbered(header)
            self.check_columns(part.name, header)
            for number, fields, raw in not_empty(part.name, records):
                if fields is None:
                    yield from _faulty(part.name, number, raw, "not valid CSV")
                elif self.header and fields == header:
                    yield from _faulty(part.name, number, raw, "repeats the names of the columns")
                elif len(fields) != len(header):
                    yield from _faulty(part.name, number, raw, f"more or fewer fields than the {first}")
                else:
                    yield from self.to_rows(part.name, number, dict(zip(header, fields, strict=True)))

    def _records(self, file: str, text: TextIO) -> Iterator[tuple[int, list[str] | None, list[str]]]:
        """Yield first line number, fields (None if malformed) and lines of each record that is not blank."""
        records = Records(file, text, **self._dialect(file))
        while True:
            try:
                fields = next(records, None)
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    raise InputError(
                        f"{file}: line {records.first}: a quotation mark is opened and never closed; close it, or set "
                        "quote: '' if quotation marks are ordinary characters"
                    ) from None
                yield records.first, None, [*records.raw]
                continue
            if fields is None:
                return
            if fields and not _says_delimiter(records):
                yield records.first, fields, [*records.raw]

    def _dialect(self, file: str) -> dict[str, Any]:
        delimiter = self.delimiter or delimiter_of(file)
        quote = quote_of(file, delimiter) if self.quote is None else self.quote
        return dialect(delimiter, quote)


def _faulty(file: str, first: int, lines: Sequence[str], fault: str) -> Iterator[Row]:
    """Reject each line of a record: with a quotation mark too many, one record holds many that were meant as rows."""
    several = f"{fault}, in a record of several lines, as one quotation mark too many makes it"
    for number, line in enumerate(lines, start=first):
        yield faulty(file, number, line, several if len(lines) > 1 else fault)


def dialect(delimiter: str, quote: str) -> dict[str, Any]:
    """The arguments of ``csv.reader``; without a ``quote``, quotation marks are ordinary characters."""
    quoting = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    return {"delimiter": delimiter, "quotechar": quote or None, "quoting": quoting, "strict": True}


def numbered(fields: Sequence[str]) -> list[str]:
    """The names of columns that have none."""
    return [str(number) for number in range(1, len(fields) + 1)]


def _says_delimiter(records: Records) -> bool:
    """Whether the record that was read is the first line, and only says what the delimiter is."""
    return records.first == 1 and len(records.raw) == 1 and _SAID.fullmatch(records.raw[0]) is not None


def said_delimiter(file: str) -> str | None:
    """The delimiter that the first line of a file says, as spreadsheets write it, or None."""
    with open_text(file) as text:
        said = _SAID.fullmatch(text.readline())
    return said and said[1]


def delimiter_of(file: str) -> str:
    """What the first line says, or else a tab in files named ``.tsv`` and a comma in all others."""
    return said_delimiter(file) or ("\t" if ".tsv" in Path(file).suffixes else ",")


def quote_of(file: str, delimiter: str) -> str:
    """The quotation mark, or nothing if it is an ordinary character, as in many files with tabs.

    There it is one if every line is a record as it stands, and some field that begins with a quotation mark does not
    end with one, or has others inside that are not doubled.
    """
    if delimiter != "\t":
        return '"'
    with open_text(file) as text:
        lines = [line.rstrip("\r\n") for line in itertools.islice(text, _LINES)]
    rows = [line.split(delimiter) for line in lines if line and not _SAID.fullmatch(line)]
    whole = all(len(row) == len(rows[0]) for row in rows)
    return "" if whole and any(_is_data(field) for row in rows for field in row) else '"'


def _is_data(field: str) -> bool:
    """Whether a field begins with a quotation mark, and yet is not quoted."""
    if not field.startswith('"'):
        return False
    quoted = len(field) > 1 and field.endswith('"')
    return not quoted or '"' in field[1:-1].replace('""', "")


def likely_delimiter(file: str) -> str:
    """The delimiter by which most of the first records have as many fields as the header, which has at least two."""

    def fits(delimiter: str) -> tuple[float, int]:
        header, *records = first_records(file, delimiter, _LINES) or [[]]
        same = sum(len(record) == len(header) for record in records) / max(len(records), 1)
        return (same if len(header) > 1 else -1), len(header)

    return said_delimiter(file) or max([delimiter_of(file), *_DELIMITERS], key=fits)


def first_records(file: str, delimiter: str, count: int) -> list[list[str]]:
    """The first records, among them the header; the rest of a malformed file is left out."""
    records: list[list[str]] = []
    with open_text(file) as text:
        try:
            parsed = Records(file, text, **dialect(delimiter, quote_of(file, delimiter)))
            records += itertools.islice((fields for fields in parsed if fields and not _says_delimiter(parsed)), count)
        except csv.Error:
            pass
    return records
