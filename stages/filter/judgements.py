"""Judgements from outside: whether a document answers a query, and what that says about the pairs of a domain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint, text_keys
from batchwright.core.normal_form import normal_form
from batchwright.core.spill import find_keys, key_words, sort_keys
from batchwright.formats.models import SIDES
from batchwright.formats.pairs import domains, scan_texts
from stages.filter.judgement_files import TEXTS, VALUES, VERDICT, judgement_rows

VERDICTS = {"relevant": True, "not relevant": False, "": None}
"""What the column ``verdict`` may hold; an empty one decides nothing."""
NOT_OVERRULED, BY_PAIR = -1, -2


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """J judgements: ``queries`` and ``documents`` ``(J,)`` are keys of normal forms, ``relevant`` ``(J,)`` is bool.

    ``places`` are their files and rows, for messages; ``undecided`` counts rows with an empty verdict.
    """

    queries: NDArray[np.void]
    documents: NDArray[np.void]
    relevant: NDArray[np.bool_]
    places: list[str]
    undecided: int

    def __len__(self) -> int:
        return len(self.relevant)


def read_judgements(files: Sequence[Path], positive: float | None) -> Judgements:
    """Read all ``files``; from the label or score ``positive`` on, or above 0 if it is None, a document is relevant.

    Raises:
        InputError: a file cannot be read, lacks a column or has a row without text or number; it names file and row.
    """
    forms: dict[str, list[str]] = {side: [] for side in TEXTS}
    relevant, places, undecided = [], [], 0
    for place, row in (row for file in files for row in judgement_rows(file)):
        texts = {side: _form(place, side, row.get(side)) for side in TEXTS}
        verdict = _verdict(place, row[VERDICT]) if VERDICT in row else _reaches(_number(place, row), positive)
        if verdict is None:
            undecided += 1
            continue
        for side in TEXTS:
            forms[side].append(texts[side])
        relevant.append(verdict)
        places.append(place)
    queries, documents = (text_keys(forms[side]) for side in TEXTS)
    return Judgements(
        queries=queries,
        documents=documents,
        relevant=np.array(relevant, bool),
        places=places,
        undecided=undecided,
    )


def _verdict(place: str, value: object) -> bool | None:
    """Return whether a verdict is that the document answers the query, None if it is empty."""
    said = "" if value is None else value.strip().lower() if isinstance(value, str) else repr(value)
    if said in VERDICTS:
        return VERDICTS[said]
    known = ", ".join(f"'{word}'" for word in VERDICTS if word)
    raise InputError(f"{place}: {VERDICT} {value!r} is none of {known}; write one of them, or leave it empty")


def _reaches(value: float, positive: float | None) -> bool:
    return value > 0 if positive is None else value >= positive


def _form(place: str, side: str, value: object) -> str:
    form = normal_form(value) if isinstance(value, str) else ""
    if not form:
        raise InputError(f"{place}: no text in the column '{side}'; add the text or remove the row")
    return form.encode(errors="replace").decode()  # JSON may escape half a character; no pair contains that


def _number(place: str, row: dict[str, Any]) -> float:
    name = next(name for name in VALUES if name in row)
    try:
        value = float(row[name])
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{place}: {name} {row[name]!r} is not a number; write a number or remove the row")
    return value


@dataclass(frozen=True, kw_only=True)
class Matched:
    """The judgements about a domain.

    ``numbers`` ``(m,)`` counts them among all judgements; ``rows`` ``(m, 2)`` is a training pair with such a query and
    one with such a document; ``relevant`` ``(m,)`` says whether the document answers the query.
    """

    numbers: NDArray[np.int64]
    rows: NDArray[np.int64]
    relevant: NDArray[np.bool_]

    def fingerprint(self) -> str:
        """Changes whenever what is said about the domain's rows does."""
        return fingerprint(self.rows.tolist(), self.relevant.tolist())


NOTHING = Matched(numbers=np.empty(0, np.int64), rows=np.empty((0, 2), np.int64), relevant=np.empty(0, bool))


def match_all(judgements: Judgements, folder: Path) -> tuple[dict[str, Matched], NDArray[np.int64]]:
    """Return the judgements about each domain of a pairs folder, and the numbers of those about no domain."""
    matched = {domain: match(judgements, folder, domain) for domain in domains(folder)}
    about = np.concatenate([of.numbers for of in matched.values()])
    return matched, np.setdiff1d(np.arange(len(judgements)), about)


def match(judgements: Judgements, folder: Path, domain: str) -> Matched:
    """Return the judgements whose query and document are both among the texts of a domain's training pairs."""
    row_of_texts = []
    for side, keys in zip(SIDES, (judgements.queries, judgements.documents), strict=True):
        words = key_words(text_keys(map(normal_form, scan_texts(folder, domain, side, "train"))))
        order = sort_keys(words)
        places = find_keys(words[:, order], keys)
        row_of_texts.append(np.where(places < 0, -1, np.append(order, -1)[places]))
    rows = np.stack(row_of_texts, axis=1)
    numbers = np.flatnonzero((rows >= 0).all(axis=1))
    return Matched(numbers=numbers, rows=rows[numbers], relevant=judgements.relevant[numbers])


def verdicts(
    matched: Matched, query_class: NDArray[np.int32], document_class: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int64]]:
    """Return ``judged`` and ``relevant`` as ``Negatives`` has them, and what overrules each judgement, ``(m,)``: the
    number of the first one that says the opposite, ``BY_PAIR``, or ``NOT_OVERRULED``.

    A training pair overrules a judgement that its document is irrelevant; where judgements contradict each other, the
    document is relevant. So it is never used as a negative where somebody says that it answers the query.
    """
    classes = np.stack([query_class, document_class], axis=1)
    cells = np.stack([query_class[matched.rows[:, 0]], document_class[matched.rows[:, 1]]], axis=1)
    every, of = np.unique(np.concatenate([classes, cells]), axis=0, return_inverse=True)
    of_pairs, of_cells = np.split(of.reshape(-1), [len(classes)])
    paired, relevant, mentioned = (np.zeros(len(every), bool) for _ in range(3))
    paired[of_pairs] = True
    mentioned[of_cells] = True
    relevant[of_cells[matched.relevant]] = True
    by = np.full(len(every), NOT_OVERRULED, np.int64)
    by[of_cells[matched.relevant][::-1]] = matched.numbers[matched.relevant][::-1]  # the first one stays
    by[paired] = BY_PAIR
    new = mentioned & ~paired
    return every[new], relevant[new], np.where(matched.relevant, NOT_OVERRULED, by[of_cells])
