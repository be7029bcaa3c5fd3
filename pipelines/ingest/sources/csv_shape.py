"""What a CSV file's first lines say about it: the character between fields, and whether quotation marks are data."""

import csv
import itertools
from pathlib import Path
from typing import Any

from batchwright.core.untrusted_text import Records
from pipelines.ingest.sources.files import open_text

_LINES = 1000
_DELIMITERS = "\t,;|"


def delimiter_of(file: str) -> str:
    """The delimiter that the file's name stands for: a tab in files named ``.tsv``, a comma in all others."""
    return "\t" if ".tsv" in Path(file).suffixes else ","


def likely_delimiter(file: str) -> str:
    """The delimiter by which most of the first records have as many fields as the header, which has at least two."""

    def fits(delimiter: str) -> tuple[float, int]:
        header, *records = first_records(file, delimiter, _LINES) or [[]]
        same = sum(len(record) == len(header) for record in records) / max(len(records), 1)
        return (same if len(header) > 1 else -1), len(header)

    likely: str = max([delimiter_of(file), *_DELIMITERS], key=fits)
    return likely


def first_records(file: str, delimiter: str, count: int) -> list[list[str]]:
    """The first records, among them the header; the rest of a malformed file is left out."""
    records: list[list[str]] = []
    with open_text(file) as text:
        try:
            found = Records(file, text, **dialect(delimiter, quote_of(file, delimiter)))
            records += itertools.islice(filter(None, found), count)
        except csv.Error:
            pass
    return records


def dialect(delimiter: str, quote: str) -> dict[str, Any]:
    """The arguments of ``csv.reader``; without a ``quote``, quotation marks are ordinary characters."""
    quoting = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    return {"delimiter": delimiter, "quotechar": quote or None, "quoting": quoting, "strict": True}


def quote_of(file: str, delimiter: str) -> str:
    """The quotation mark, or nothing if it is an ordinary character, as in many files with tabs.

    There it is one if every line is a record as it stands, and some field that begins with a quotation mark does not
    end with one, or has others inside that are not doubled.
    """
    if delimiter != "\t":
        return '"'
    with open_text(file) as text:
        lines = [line.rstrip("\r\n") for line in itertools.islice(text, _LINES)]
    rows = [line.split(delimiter) for line in lines if line]
    whole = all(len(row) == len(rows[0]) for row in rows)
    return "" if whole and any(_is_data(field) for row in rows for field in row) else '"'


def _is_data(field: str) -> bool:
    """Whether a field begins with a quotation mark, and yet is not quoted."""
    if not field.startswith('"'):
        return False
    quoted = len(field) > 1 and field.endswith('"')
    return not quoted or '"' in field[1:-1].replace('""', "")
