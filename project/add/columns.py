"""Guess which columns of a table hold query, document and hard negatives."""

import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence

from batchwright.core.errors import InputError
from pipelines.ingest.sources import kind_of
from pipelines.ingest.sources.chats import is_chat
from pipelines.ingest.sources.labels import label_of, number_of
from pipelines.ingest.sources.split_names import known_split
from project.add.kinds import Entry, listed, with_jq
from project.add.words import (
    DOCUMENTS,
    OPPOSITES,
    QUERIES,
    joined,
    names_a_label,
    names_another,
    names_negatives,
    words,
)

Table = dict[str, list[object]]
"""The first values of each column."""

_LONGER = 1.5
"""If the first of two columns has texts this many times as long as the second, it holds the documents."""
_FEW = 20
"""The most values that a column of labels has."""
_SHORT = 12
"""The most characters of a label."""
_MOST_COLUMNS = 200
"""If objects have more keys, these are texts."""
_NO = r"(?:not?|non|un|im|in|ir|dis)[ _-]?"
"""What stands before a label to make its opposite, as in ``not relevant`` and ``irrelevant``."""
_SIDES = {*QUERIES, *DOCUMENTS}
_SQUAD = "{query: .question, document: $c}"
_NUMBERS = re.compile(r"(?=.*\d)[\W\d_TZeE]+", re.DOTALL)
"""Numbers and times as people and programs write them: ``3,50 €``, ``2026-01-31T12:00:00Z``, ``1e-3``."""
_ID = re.compile(r"(?=\D*\d)[!-~]+")


def guess_columns(table: Mapping[str, Sequence[object]], named: Entry, name: str) -> Entry:
    """Return the columns of query, document, hard negatives, their scores and more, of which some may be ``named``.

    They are recognised by their names; if one is not, it is the only other column of texts, and if neither is, the
    query is the first one, unless its texts are much longer. Failing that, one column of chats is both. None is taken
    whose values repeat as labels do, nor in place of one that has a known name, but holds something else than texts.

    Raises:
        InputError: it is not clear which columns they are.
    """
    texts = {column: _mean_length(values) for column, values in table.items() if _may_be_a_side(column, values)}
    documents = [
        column
        for column, values in table.items()
        if (column in texts or are_lists_of_texts(values)) and not are_ids(values)
    ]
    columns = {
        "query": named.get("query") or _first(QUERIES, list(texts)),
        "document": named.get("document") or _first(DOCUMENTS, documents),
    }
    missing = [side for side, column in columns.items() if column is None]
    others = [column for column in texts if column not in columns.values() and not names_negatives(column)]
    if missing == ["document"]:
        others = [column for column in others if column in documents]
    if len(others) == 2 and texts[others[0]] > _LONGER * texts[others[1]]:
        others.reverse()
    known = {name for side in missing for name in (QUERIES if side == "query" else DOCUMENTS)}
    meant = [c for c, values in table.items() if joined(c) in known and filled(values) and c not in columns.values()]
    doubtful = [c for c in others if joined(c) not in _SIDES and _repeat(table[c])]
    if missing and (len(others) != len(missing) or meant or doubtful):
        if len(chats := [column for column, values in table.items() if are_chats(values)]) == 1 and not named:
            return {"query": chats[0], "document": chats[0]}
        raise InputError(
            f"{name}: it is not clear which columns hold query and document; say --query and --document, out of: "
            f"{listed(table, _FEW) or 'none'}{_such_as(columns, {c: texts[c] for c in others if c not in doubtful})}"
            f"{_of_ids(table) or _unfolding(table, name)}"
        )
    columns |= dict(zip(missing, others, strict=False))
    negatives = named.get("negatives") or [
        column
        for column, values in table.items()
        if names_negatives(column) and column not in columns.values() and _are_negatives(values)
    ]
    found = columns | ({"negatives": negatives} if negatives else {})
    further = {
        "scores": _scores(table, found),
        "split": named.get("split_column") or _named_and("split", _are_splits, table),
        "group": named.get("group"),
        "weight": named.get("weight") or _named_and("weight", _are_weights, table),
        "metadata": named.get("metadata"),
    }
    return found | {name: column for name, column in further.items() if column}


def _are_splits(values: Sequence[object]) -> bool:
    """Whether all values name a split, and not all the same: that is what a file for training alone has."""
    found = set(map(known_split, values))
    return None not in found and "train" in found and len(found) > 1


def _are_weights(values: Sequence[object]) -> bool:
    numbers = [number_of(value) for value in filled(values)]
    return bool(numbers) and all(number is not None and number > 0 for number in numbers)


def _named_and(word: str, test: Callable[[Sequence[object]], bool], table: Mapping[str, Sequence[object]]) -> str:
    """The first column whose name ends with a word, and whose values pass the test; empty if there is none."""
    return next((column for column, values in table.items() if words(column)[-1:] == [word] and test(values)), "")


def _scores(table: Mapping[str, Sequence[object]], columns: Entry) -> list[str]:
    """The columns of a teacher's scores, such as ``pos_scores`` and ``neg_scores``: a number for each text of a row.

    A number of a row without hard negatives is none: it may say whether the row is a pair. Columns that some rows lack
    are left out, since it is not known which.
    """
    if "negatives" not in columns or not table.keys() >= {columns["document"], *columns["negatives"]}:
        return []  # columns that are named but not there are an error of the source
    documents = [len(_cell(value)) for value in table[columns["document"]]]
    given = [table[column] for column in columns["negatives"]]
    negatives = [sum(len(_cell(value)) for value in values) for values in zip(*given, strict=False)]
    named = {
        column: [len(_cell(value)) for value in values]
        for column, values in table.items()
        if words(column)[-1:] in (["score"], ["scores"]) and _are_numbers(values)
    }
    apart = [next((c for c in named if words(c)[0] == side), "") for side in ("pos", "neg")]
    if [named.get(column) for column in apart] == [documents, negatives]:
        return apart
    together = [one + more for one, more in zip(documents, negatives, strict=False)]
    return [column for column, counts in named.items() if counts == together][:1]


def _are_numbers(values: Sequence[object]) -> bool:
    return all(number_of(item) is not None for value in values for item in _cell(value)) and bool(filled(values))


def _cell(value: object) -> list[object]:
    """The texts or numbers of a cell: one, or those of a list."""
    return filled(value if isinstance(value, list) else [value])


def _first(known: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((column for name in known for column in columns if joined(column) == name), None)


def _such_as(columns: Mapping[str, str | None], lengths: Mapping[str, float]) -> str:
    """Suggest options: the first column is the query, the next of about the most length the document."""
    long = [column for column, length in lengths.items() if _LONGER * length >= max(lengths.values())]
    first = columns["query"] or next(iter(lengths), None)
    document = columns["document"] or next((column for column in long if column != first), next(iter(long), None))
    query = columns["query"] or next((column for column in lengths if column != document), None)
    if query is None or document is None:
        return ""
    return f"; such as --query {shlex.quote(query)} --document {shlex.quote(document)}"


def _of_ids(table: Mapping[str, Sequence[object]]) -> str:
    """Say which columns may hold ids, or queries in lists, where texts are meant."""
    known = [column for column in table if joined(column) in _SIDES and are_ids(table[column])]
    if known:
        return f"; '{known[0]}' holds ids, in whose place their texts must stand"
    named = [column for column in table if joined(column) in QUERIES and are_lists_of_texts(table[column])]
    lists = [column for column in named if any(isinstance(value, list) for value in table[column])]
    return f"; '{lists[0]}' holds lists, in whose place one text must stand" if lists else ""


def _unfolding(table: Mapping[str, Sequence[object]], name: str) -> str:
    """Say how to take pairs out of objects or lists in columns, if there are some."""
    objects = [column for column, values in table.items() if any(isinstance(value, dict) for value in values)]
    items = {
        column: next((value for value in values if isinstance(value, list) and value), [None])
        for column, values in table.items()
    }
    rows = [(column, value[0]) for column, value in items.items() if isinstance(value[0], dict) and not is_chat(value)]
    beside = any(joined(column) in _SIDES and are_texts(values) for column, values in table.items())
    if {"queries", "corpus", "relevant_docs"} <= {*objects}:
        pairs = ". as $d | .relevant_docs | to_entries[] | .key as $q | .value[]"
        program = f"{pairs} | {{query: $d.queries[$q], document: $d.corpus[.]}}"
    elif texts := [column for column in objects if joined(column) in QUERIES and are_lists_of_texts(table[column])]:
        program = f".{json.dumps(texts[0])} |= .text"
    elif objects:
        program = f"{'. + ' if beside else ''}.{json.dumps(objects[0])}"
    elif len(table) > _MOST_COLUMNS:
        program = "to_entries[] | {query: .key, document: .value}"
    elif rows and "paragraphs" in rows[0][1]:  # as SQuAD has them
        program = f".{json.dumps(rows[0][0])}[].paragraphs[] | .context as $c | .qas[] | {_SQUAD}"
    elif rows and not beside:
        program = f".{json.dumps(rows[0][0])}[]"
    elif rows and _fits(rows[0][1], table):
        program = f"del(.{json.dumps(rows[0][0])}) + .{json.dumps(rows[0][0])}[]"
    elif [list(map(type, value[:2])) for value in items.values()] == [[str, str]]:
        list_of = f".{json.dumps(*items)}"
        program = f"{{query: {list_of}[0], document: {list_of}[1]}}"
    else:
        return ""
    why = "; a column of objects or lists holds no text"
    if kind_of(name) != "jsonl":  # which jq does not read
        return f"{why}, write its texts into columns of their own"
    return f"{why}, take it out: {with_jq(program, name)}"


def _fits(item: Mapping[str, object], table: Mapping[str, Sequence[object]]) -> bool:
    """Whether an object has texts that may stand beside those of its row, of which it replaces none."""
    texts = {joined(column) for column, values in table.items() if are_texts(values)} & _SIDES
    return not texts & set(map(joined, item)) and not all(are_ids([value]) for value in item.values())


def _may_be_a_side(column: str, values: Sequence[object]) -> bool:
    labels = label_pair(distinct(values)) or (names_a_label(column) and are_few(values)) or _are_choices(values)
    return are_texts(values) and not names_another(column) and not labels


def _are_negatives(values: Sequence[object]) -> bool:
    flags = label_pair(distinct(values))
    return (are_texts(values) or are_lists_of_texts(values)) and not are_ids(values) and not flags


def are_ids(values: Sequence[object]) -> bool:
    """Whether all values, or the items of lists, look like ids: words with a digit, or whole numbers."""
    items = [item for value in values for item in _cell(value)]
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


def filled(values: Sequence[object]) -> list[object]:
    """The values that are there."""
    return [value for value in values if value not in (None, "", [])]


def distinct(values: Sequence[object]) -> list[object]:
    """Each value that is there once, in order; those of other kinds than text and numbers count as one."""
    scalars = [value if isinstance(value, str | int | float) else "..." for value in filled(values)]
    return list({(type(value), value): value for value in scalars}.values())


def are_few(values: Sequence[object]) -> bool:
    """Whether the values are few ones that come again and again, as labels do."""
    return len(distinct(values)) <= _FEW and len(distinct(values)) < len(filled(values))


def _repeat(values: Sequence[object]) -> bool:
    """Whether each value comes twice or more in the mean, and they are few."""
    return len(distinct(values)) <= _FEW and 2 * len(distinct(values)) <= len(filled(values))


def _are_choices(values: Sequence[object]) -> bool:
    """Whether the values are few short words that repeat, such as the letters of answers to choose from."""
    short = (isinstance(value, str) and len(value) <= _SHORT and not re.search(r"\s", value) for value in values)
    return _repeat(values) and all(short)


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
    return isinstance(item, str) or (isinstance(item, dict) and isinstance(item.get("text"), str))


def _mean_length(values: Sequence[object]) -> float:
    return sum(len(value) for value in values if isinstance(value, str)) / max(len(values), 1)
