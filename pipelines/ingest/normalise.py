"""Turns raw rows into clean, valid pairs, or into the reason for rejecting them; or into texts that need no pair."""

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from batchwright.formats.pairs import file_stem
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.base import Row

SHOWN = 200
_LONGEST_STEM = 200  # a file name may have 255 bytes


class RowError(ValueError):
    """A row is not a valid pair; the message is the reason, identical for all rows with the same fault."""


class Pair(NamedTuple):
    """A valid pair."""

    query: str
    document: str
    domain: str
    negatives: list[str]


def normalise(row: Row) -> Pair:
    """Turn a raw row into a pair.

    Raises:
        RowError: the row is not a valid pair.
    """
    if row.fault is not None:
        raise RowError(row.fault)
    query, document = _text(row.query, "query"), _text(row.document, "document")
    domain = _text(row.domain, "domain")
    negatives = list(dict.fromkeys(_text(negative, "negative") for negative in row.negatives))
    if query == document:
        raise RowError("query equals document")
    if len(file_stem(domain)) > _LONGEST_STEM:
        raise RowError("domain is too long for a name")
    return Pair(query, document, domain, negatives)


def read_texts(sources: Sequence[AnySource]) -> Iterator[list[str]]:
    """Yield each row's texts: its query and its document, once if they are equal, none if the row has a fault.

    Raises:
        InputError: a source cannot be read.
    """
    for source in sources:
        for part in source.parts():
            yield from map(_texts, source.rows(part))


def _texts(row: Row) -> list[str]:
    texts: dict[str, None] = {}
    for value in () if row.fault else (row.query, row.document):
        with suppress(RowError):
            texts[_text(value, "text")] = None
    return list(texts)


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


def clean(text: str) -> str:
    """Normalise to Unicode NFC and ``\\n`` line ends, and strip white space around the text and at ends of lines.

    Indentation that all lines share is removed; the rest is kept, because code depends on it.
    """
    unified = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    if "\n" not in unified:
        return unified.strip()
    lines = textwrap.dedent("\n".join(line.rstrip() for line in unified.split("\n"))).strip("\n")
    return lines if "\n" in lines else lines.strip()


def excerpt(row: Row) -> str:
    """A short text by which a user can recognise a raw row."""
    shown = next((value for value in (row.query, row.document) if value is not None), "")
    return printable(str(shown))


def printable(text: str) -> str:
    """The beginning of a text, on one line, with unprintable characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:SHOWN])[:SHOWN]
