"""Find the column of labels or scores that says which rows of a table are pairs; where that is not clear, ask."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from batchwright.core.errors import InputError
from pipelines.ingest.sources.labels import label_of, number_of
from pipelines.ingest.sources.split_names import known_split
from project.add.kinds import Entry, split_of
from project.add.values import are_few, distinct, filled, label_pair, opposites
from project.add.words import is_about_one_side, names_a_label, names_negatives, names_one_side, words

_SHOWN = 4
_NUMERIC = re.compile(r"\W*\d[\d.,/e+-]*\W*")
"""A number, also as people write it: 0,87 or 87 % or 3/5."""


def guess_labels(
    table: Mapping[str, Sequence[object]], taken: Collection[str | None], named: Entry, name: str
) -> Entry | None:
    """Return ``labels`` of a source, or None if all rows are pairs.

    Labels of two values, by a usual name, say themselves which rows are pairs. What ``named`` says is taken: the
    column as ``label``, and which labels are ``positive`` or which score pairs have ``at_least``.

    Raises:
        InputError: a column may say which rows are pairs, but not which labels or scores they have, or it has splits.
    """
    used = (*taken, named.get("label"))
    others = {column: distinct(values) for column, values in table.items() if column not in used}
    if splits := [column for column, values in others.items() if _are_splits(values)]:
        _ask(splits[0], table, name)
    if column := named.get("label"):
        rule = {key: named[key] for key in ("positive", "at_least") if key in named}
        return {"column": column} | (rule or {"positive": [_positive(table, column, name)]})
    clear = [column for column, values in others.items() if names_a_label(column) and label_pair(values)]
    doubtful = [column for column, values in others.items() if _may_be(column, values, table[column])]
    if len(clear) > 1 or (not clear and doubtful):
        _ask([*clear, *doubtful][0], table, name)
    if not clear:
        return None
    [column] = clear
    return {"column": column, "positive": [_positive(table, column, name)]}


def _positive(table: Mapping[str, Sequence[object]], column: str, name: str) -> object:
    """Return the label of pairs as the table spells it."""
    values = distinct(table[column])
    if pair := label_pair(values):
        return next(value for value in values if label_of(value) == pair[0])
    return _ask(column, table, name)


def _may_be(column: str, values: Sequence[object], all_values: Sequence[object]) -> bool:
    """Whether a column may say which rows are pairs: by its name, its splits, two labels, or scores from -1 to 1."""
    if is_about_one_side(column):  # such as negative, where 1 is no pair
        return label_pair(values) is not None and names_one_side(column)
    numbers = [number for value in values if (number := number_of(value)) is not None]
    if names_a_label(column):
        graded = all(_NUMERIC.fullmatch(str(value)) for value in values)
        return bool(values) and (are_few(all_values) or graded or _are_lists(all_values))
    if {"split", "partition"} & {*words(column)} and any(split_of(str(value)) == "held out" for value in values):
        return True
    if len(values) < 2:
        marked = len(filled(all_values)) < len(all_values) and _is_mark(values)
        return bool(values) and (words(column)[:1] == ["is"] or marked)
    if label_pair(values) or (are_few(all_values) and _hold_opposites(values)):
        return True
    between = len(numbers) == len(values) and all(-1 <= number <= 1 for number in numbers)
    return between and any(number % 1 for number in numbers)


def _is_mark(values: Sequence[object]) -> bool:
    """Whether the only value is what people put where something is so, and leave empty where it is not."""
    return label_pair(values) is not None or {label_of(value) for value in values} <= {"x", "*"}


def _hold_opposites(values: Sequence[object]) -> bool:
    """Whether one of several values is a word for negatives, or two are opposites.

    Short ones are left out, such as si and no, which may be anything.
    """
    found = {label_of(value) for value in values}
    two = any(found >= {*pair} for pair in opposites(found) if len(pair[0]) > 2 or not pair[0].isascii())
    return two or any(map(names_negatives, found))


def _are_splits(values: Sequence[object]) -> bool:
    found = {*map(known_split, values)}
    return len(found) > 1 and None not in found


def _are_lists(values: Sequence[object]) -> bool:
    return any(isinstance(value, list) for value in values)


def _ask(column: str, table: Mapping[str, Sequence[object]], name: str) -> object:
    values, option = distinct(table[column]), shlex.quote(column)
    if _are_lists(table[column]):
        raise InputError(
            f"{name}: column '{column}' holds lists, which may say which of a row's documents answer the query; write "
            f"a row for each document, or keep all with --ignore {option}"
        )
    numbers = [number for value in values if (number := number_of(value)) is not None]
    holds = ", ".join(map(str, values[:_SHOWN])) + (", ..." if len(values) > _SHOWN else "")
    keep = "--positive VALUE"
    if len(numbers) == len(values) > 2:
        keep += " or --at-least NUMBER"
    if any(number % 1 for number in numbers):
        holds, keep = f"numbers from {min(numbers):g} to {max(numbers):g}", "--at-least NUMBER"
    split = f"; or read it as the split with --split-column {option}" if all(map(known_split, values)) else ""
    raise InputError(
        f"{name}: column '{column}' ({holds}) may say which rows are pairs: keep those with --label {option} "
        f"{keep}, or all rows with --ignore {option}{split}"
    )
