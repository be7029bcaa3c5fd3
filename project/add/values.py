"""What the values of a column are: texts, ids, labels, lists, or few that come again and again."""

import re
from collections.abc import Collection, Sequence

from pipelines.ingest.sources.chats import is_chat
from pipelines.ingest.sources.labels import label_of
from project.add.words import OPPOSITES

FEW = 20
"""The most values that a column of labels has."""
_SHORT = 12
"""The most characters of a label."""
_NO = r"(?:not?|non|un|im|in|ir|dis)[ _-]?"
"""What stands before a label to make its opposite, as in ``not relevant`` and ``irrelevant``."""
_NUMBERS = re.compile(r"(?=.*\d)[\W\d_TZeE]+", re.DOTALL)
"""Numbers and times as people and programs write them: ``3,50 €``, ``2026-01-31T12:00:00Z``, ``1e-3``."""
_ID = re.compile(r"(?=\D*\d)[!-~]+")


def are_ids(values: Sequence[object]) -> bool:
    """Whether all values, or the items of lists, look like ids: words with a digit, or whole numbers."""
    items = [item for value in values for item in items_of(value)]
    return bool(items) and all(
        isinstance(item, int) or (isinstance(item, str) and _ID.fullmatch(item)) for item in items
    )


def label_pair(values: Sequence[object]) -> tuple[str, str] | None:
    """The label of pairs and that of other rows, if these values are such labels and some that of pairs."""
    found = {label_of(value) for value in values} if len(values) <= 2 else set()
    return next((pair for pair in opposites(found) if pair[0] in found and found <= {*pair}), None)


def opposites(labels: Collection[str]) -> list[tuple[str, str]]:
    """Known labels of pairs and of other rows, and those among ``labels`` that differ by a "not"."""
    made = [(one, other) for one in labels for other in labels if re.fullmatch(_NO + re.escape(one), other)]
    return [*OPPOSITES, *made]


def items_of(value: object) -> list[object]:
    """The texts or numbers of a cell: one, or those of a list."""
    return filled(value if isinstance(value, list) else [value])


def filled(values: Sequence[object]) -> list[object]:
    """The values that are there."""
    return [value for value in values if value not in (None, "", [])]


def distinct(values: Sequence[object]) -> list[object]:
    """Each value that is there once, in order; those of other kinds than text and numbers count as one."""
    scalars = [value if isinstance(value, str | int | float) else "..." for value in filled(values)]
    return list({(type(value), value): value for value in scalars}.values())


def are_few(values: Sequence[object]) -> bool:
    """Whether the values are few ones that come again and again, as labels do."""
    return len(distinct(values)) <= FEW and len(distinct(values)) < len(filled(values))


def repeat(values: Sequence[object]) -> bool:
    """Whether each value comes twice or more in the mean, and they are few."""
    return len(distinct(values)) <= FEW and 2 * len(distinct(values)) <= len(filled(values))


def are_choices(values: Sequence[object]) -> bool:
    """Whether the values are few short words that repeat, such as the letters of answers to choose from."""
    short = (isinstance(value, str) and len(value) <= _SHORT and not re.search(r"\s", value) for value in values)
    return repeat(values) and all(short)


def are_texts(values: Sequence[object]) -> bool:
    """Whether most of the values that are there are texts, and not numbers or times."""
    there = filled(values)
    texts = [value for value in there if isinstance(value, str)]
    return 2 * len(texts) > len(there) and 2 * sum(map(bool, map(_NUMBERS.fullmatch, texts))) <= len(texts)


def are_lists_of_texts(values: Sequence[object]) -> bool:
    """Whether most of the values that are there are lists of texts, or of objects with a text, or such an object."""
    there = [[value] if isinstance(value, dict) else value for value in filled(values)]
    lists = [value for value in there if isinstance(value, list) and all(map(_has_text, filled(value)))]
    return 2 * len(lists) > len(there)


def are_chats(values: Sequence[object]) -> bool:
    """Whether most of the values that are there are chats."""
    return 2 * sum(map(is_chat, values)) > len(filled(values))


def _has_text(item: object) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and isinstance(item.get("text", 0), str | None))
