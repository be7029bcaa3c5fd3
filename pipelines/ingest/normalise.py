"""Turns raw rows into clean, valid pairs, or into the reason for rejecting them; or into texts that need no pair."""

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from batchwright.formats.metadata import NOTHING, text_of, write_metadata
from batchwright.formats.pairs import Split, file_stem
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.base import NO_QUERY, Row
from pipelines.ingest.sources.labels import number_of

SHOWN = 200
_MOST_WEIGHT = 1e30  # sums stay finite
_LONGEST_STEM = 200  # a file name may have 255 bytes
_UNSEEN = re.compile(
    r"[\s\0-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)
"""White space, control characters, and what Unicode calls default ignorable; Python's tables change with its version.
"""


_MISSING = ("nan", "NaN", "<NA>")


class RowError(ValueError):
    """A row is not a valid pair; the message is the reason, identical for all rows with the same fault."""


class Pair(NamedTuple):
    """A valid pair, or a document of a corpus, whose query is empty.

    ``scores`` are a teacher's of its document and negatives, NaN where it has none, if it has any. ``group`` is empty
    if the pair is in none.
    """

    query: str
    document: str
    domain: str
    negatives: list[str]
    scores: Sequence[float] = ()
    split: Split | None = None
    group: str = ""
    weight: float = 1.0
    metadata: str = NOTHING


def normalise(row: Row) -> Pair:
    """Turn a raw row into a pair.

    Raises:
        RowError: the row is not a valid pair.
    """
    if row.fault is not None:
        raise RowError(row.fault)
    query = "" if row.query is NO_QUERY else _text(row.query, "query")
    if query and _is_punctuation(query):
        raise RowError("query is punctuation only")
    document = _text(row.document, "document")
    domain = _text(str(row.domain) if isinstance(row.domain, int) else row.domain, "domain")
    scores = list(map(_score, row.scores)) or [math.nan] * (1 + len(row.negatives))
    negatives: dict[str, float] = {}
    for value, score in zip(row.negatives, scores[1:], strict=True):
        if not _is_blank(value) and value not in _MISSING:
            negatives.setdefault(_text(value, "negative"), score)
    if query == document:
        raise RowError("query equals document")
    if len(file_stem(domain)) > _LONGEST_STEM:
        raise RowError("domain is too long for a name")
    own = (scores[0], *negatives.values()) if row.scores else ()
    more = row.split, _group(row.group), _weight(row.weight), _metadata(row.metadata)
    return Pair(query, document, domain, list(negatives), own, *more)


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
    if _is_blank(value):
        raise RowError(f"empty {name}")
    if (text := clean(value)) in _MISSING:
        raise RowError(f"{name} is '{text}', which pandas writes where there is none")
    return text


def _score(value: object) -> float:
    score = math.nan if value in (None, "") or value != value else number_of(value)  # NaN is unlike itself
    if score is None:
        raise RowError("score is not a number")
    return score


def _group(value: object) -> str:
    """Return the name of a group as text; where it is missing or blank, there is none."""
    try:
        name = "" if _is_blank(value) else clean(text_of("group", value))
    except ValueError as error:
        raise RowError(str(error)) from None
    return "" if name in _MISSING else name


def _weight(value: object) -> float:
    number = 1.0 if value in (None, "") else number_of(value)
    weight = math.nan if number is None else float(np.float32(np.clip(number, -_MOST_WEIGHT, _MOST_WEIGHT)))
    if not 0 < weight < _MOST_WEIGHT:
        raise RowError("weight is not a positive number")
    return weight


def _metadata(values: Mapping[str, object]) -> str:
    try:
        return write_metadata(values)
    except ValueError as error:
        raise RowError(f"metadata {error}") from None


def _is_blank(value: object) -> bool:
    """Whether nobody would see anything of a value."""
    return value is None or (isinstance(value, str) and _UNSEEN.fullmatch(value) is not None)


def _is_punctuation(text: str) -> bool:
    """Whether a text asks nothing: it has no letter, digit or symbol, such as an operator or an emoji."""
    return all(unicodedata.category(each).startswith(("P", "M")) or _is_blank(each) for each in text)


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
    shown = next((value for value in (row.query, row.document) if value not in (None, NO_QUERY)), "")
    return printable(str(shown))


def printable(text: str) -> str:
    """The beginning of a text, on one line, with unprintable characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:SHOWN])[:SHOWN]
