"""Guess which columns of a table hold query, document and hard negatives."""

from collections.abc import Mapping, Sequence

from batchwright.core.errors import InputError
from project.add.kinds import Entry

QUERIES = ("query", "question", "anchor", "title", "claim", "prompt", "instruction", "utterance", "sentence1", "q")
DOCUMENTS = (
    "document",
    "answer",
    "positive",
    "passage",
    "text",
    "body",
    "content",
    "response",
    "code",
    "sentence2",
    "d",
)
OTHERS = ("id", "domain", "group", "split", "source", "url", "date")
"""What the names of other columns end with."""
_LONGER = 1.5
"""If the first of two columns has texts this many times as long as the second, it holds the documents."""


def guess_columns(table: Mapping[str, Sequence[object]], given: Entry, name: str) -> Entry:
    """Return the columns of query, document and hard negatives, of which some may be ``given``.

    They are recognised by their names; if one is not, it is the only other column of texts, and if neither is, the
    query is the first one, unless its texts are much longer.

    Raises:
        InputError: it is not clear which columns they are.
    """
    texts = {
        column: _mean_length(values)
        for column, values in table.items()
        if _are_texts(values) and not column.lower().endswith(OTHERS)
    }
    found = {
        side: given.get(side) or next((column for known in names for column in texts if column.lower() == known), None)
        for side, names in (("query", QUERIES), ("document", DOCUMENTS))
    }
    missing = [side for side, column in found.items() if column is None]
    others = [column for column in texts if column not in found.values()]
    if len(others) == 2 and texts[others[0]] > _LONGER * texts[others[1]]:
        others.reverse()
    if missing and len(others) != len(missing):
        raise InputError(
            f"{name}: it is not clear which columns hold query and document; say --query and --document, out of: "
            f"{', '.join(table) or 'none'}"
        )
    found |= dict(zip(missing, others, strict=False))
    negatives = given.get("negatives") or [column for column in table if column.lower().startswith("negative")]
    return found | ({"negatives": negatives} if negatives else {})


def _are_texts(values: Sequence[object]) -> bool:
    given = [value for value in values if value not in (None, "")]
    return all(isinstance(value, str) for value in given) and not all(str(value).isdecimal() for value in given)


def _mean_length(values: Sequence[object]) -> float:
    return sum(len(value) for value in values if isinstance(value, str)) / max(len(values), 1)
