"""Raw rows to clean, valid pairs, or to the reason why not. Pure functions."""

import textwrap
import unicodedata
from typing import NamedTuple

from batchwright.formats.pairs import file_stem
from pipelines.ingest.sources.base import Row

_SHOWN = 200
_LONGEST_STEM = 200  # of a file name, whose limit is 255 bytes


class RowError(ValueError):
    """A row is not a pair; the message is the reason, worded so that equal faults have equal reasons."""


class Pair(NamedTuple):
    """A valid pair."""

    query: str
    document: str
    domain: str
    negatives: list[str]


def clean(text: str) -> str:
    """Unicode NFC, ``\\n`` for line ends, no white space around the text or at the end of a line.

    Indentation stays as far as it differs between lines, for code is worth nothing without it.
    """
    unified = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    if "\n" not in unified:
        return unified.strip()
    lines = textwrap.dedent("\n".join(line.rstrip() for line in unified.split("\n"))).strip("\n")
    return lines if "\n" in lines else lines.strip()


def normalise(row: Row) -> Pair:
    """The pair that a raw row holds.

    Raises:
        RowError: it holds none.
    """
    if row.fault is not None:
        raise RowError(row.fault)
    query, document = _text(row.query, "query"), _text(row.document, "document")
    domain = _text(row.domain, "domain")
    negatives = list(dict.fromkeys(_text(negative, "negative") for negative in row.negatives))
    if query == document:
        raise RowError("query equals document")
    if document in negatives:
        raise RowError("a negative equals the document")
    if len(file_stem(domain)) > _LONGEST_STEM:
        raise RowError("domain is too long for a name")
    return Pair(query, document, domain, negatives)


def excerpt(row: Row) -> str:
    """What to recognise a raw row by."""
    shown = next((value for value in (row.query, row.document) if value is not None), "")
    return printable(str(shown))


def printable(text: str) -> str:
    """The beginning of a text on one line, unprintable characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_SHOWN])[:_SHOWN]


def _text(value: object, name: str) -> str:
    if value is None:
        raise RowError(f"no {name}")
    if not isinstance(value, str):
        raise RowError(f"{name} is not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RowError(f"{name} is not UTF-8") from None
    if not (cleaned := clean(value)):
        raise RowError(f"empty {name}")
    return cleaned
