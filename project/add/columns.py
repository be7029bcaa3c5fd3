"""Guess which columns of a table hold query, document and hard negatives."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence

from batchwright.core.errors import InputError
from pipelines.ingest.sources import kind_of
from pipelines.ingest.sources.chats import is_chat
from pipelines.ingest.sources.labels import number_of
from pipelines.ingest.sources.split_names import known_split
from project.add.kinds import Entry, listed, with_jq
from project.add.values import (
    FEW,
    are_chats,
    are_choices,
    are_few,
    are_ids,
    are_lists_of_texts,
    are_texts,
    distinct,
    filled,
    items_of,
    label_pair,
    repeat,
)
from project.add.words import (
    DOCUMENTS,
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
_NEARLY_ALL = 0.9
_MOST_COLUMNS = 200
"""If objects have more keys, these are texts."""
_SIDES = {*QUERIES, *DOCUMENTS}
_SQUAD = "{query: .question, document: $c}"


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
    doubtful = [c for c in others if joined(c) not in _SIDES and repeat(table[c])]
    if missing and (len(others) != len(missing) or meant or doubtful):
        if len(chats := [column for column, values in table.items() if are_chats(values)]) == 1 and not named:
            return {"query": chats[0], "document": chats[0]}
        raise InputError(
            f"{name}: it is not clear which columns hold query and document; say --query and --document, out of: "
            f"{listed(table, FEW) or 'none'}{_such_as(columns, {c: texts[c] for c in others if c not in doubtful})}"
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

    A number of a row without hard negatives is none: it may say whether the row is a pair. Rows may lack scores, and a
    few may have too many or too few, which ingest rejects.
    """
    if "negatives" not in columns or not table.keys() >= {columns["document"], *columns["negatives"]}:
        return []  # columns that are named but not there are an error of the source
    documents = [(len(items_of(value)),) * 2 for value in table[columns["document"]]]  # ingest drops empty ones
    given = list(zip(*(table[column] for column in columns["negatives"]), strict=False))
    negatives = [_counted(values) for values in given]
    named = {
        column: [len(_cells(value)) if items_of(value) else 0 for value in values]
        for column, values in table.items()
        if words(column)[-1:] in (["score"], ["scores"]) and _are_numbers(values)
    }
    apart = [next((c for c in named if words(c)[0] == side), "") for side in ("pos", "neg")]
    if all(apart) and all(map(_fit, (named[column] for column in apart), (documents, negatives))):
        return apart
    together = [(one + more, other + most) for (one, other), (more, most) in zip(documents, negatives, strict=False)]
    some = [row for row, values in enumerate(given) if any(map(items_of, values))]
    fitting = [
        column
        for column, counts in named.items()
        if _fit([counts[row] for row in some], [together[row] for row in some])
    ]
    return fitting[:1]


def _counted(values: Sequence[object]) -> tuple[int, int]:
    """How many texts a row has in some columns, without and with those that are missing, which ingest leaves out."""
    cells = [cell for value in values for cell in _cells(value)]
    return sum(cell is not None for cell in cells), len(cells)


def _cells(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _fit(scores: Sequence[int], texts: Sequence[tuple[int, int]]) -> bool:
    """Whether nearly all rows that have scores have one for each text."""
    rows = [count in counts for count, counts in zip(scores, texts, strict=False) if count]
    return sum(rows) >= _NEARLY_ALL * len(rows) > 0


def _are_numbers(values: Sequence[object]) -> bool:
    items = [item for value in values for item in items_of(value)]
    return all(number_of(item) is not None for item in items) and bool(items)


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
    labels = label_pair(distinct(values)) or (names_a_label(column) and are_few(values)) or are_choices(values)
    return are_texts(values) and not names_another(column) and not labels


def _are_negatives(values: Sequence[object]) -> bool:
    flags = label_pair(distinct(values))
    return (are_texts(values) or are_lists_of_texts(values)) and not are_ids(values) and not flags


def _mean_length(values: Sequence[object]) -> float:
    return sum(len(value) for value in values if isinstance(value, str)) / max(len(values), 1)
