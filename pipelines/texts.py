"""Texts of sources, for those who need no pairs."""

from collections.abc import Iterator, Sequence

from pipelines.ingest.normalise import clean
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.base import Row


def read_texts(sources: Sequence[AnySource]) -> Iterator[list[str]]:
    """Yield each row's texts: its query and its document, once if they are equal, none if the row has a fault.

    Raises:
        InputError: a source cannot be read.
    """
    for source in sources:
        for part in source.parts():
            yield from map(_texts, source.rows(part))


def _texts(row: Row) -> list[str]:
    values = () if row.fault else (row.query, row.document)
    found = (clean(value) for value in values if isinstance(value, str) and _is_text(value))
    return list(dict.fromkeys(text for text in found if text))


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
