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
from stages.filter.judgement_files import TEXTS, VALUES, judgement_rows


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """J judgements: ``queries`` and ``documents`` ``(J,)`` are keys of normal forms, ``relevant`` ``(J,)`` is bool."""

    queries: NDArray[np.void]
    documents: NDArray[np.void]
    relevant: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.relevant)


def read_judgements(files: Sequence[Path], positive: float | None) -> Judgements:
    """Read all ``files``; from the label or score ``positive`` on, or above 0 if it is None, a document is relevant.

    Raises:
        InputError: a file cannot be read, lacks a column or has a row without text or number; it names file and row.
    """
    forms: dict[str, list[str]] = {side: [] for side in TEXTS}
    relevant = []
    for place, row in (row for file in files for row in judgement_rows(file)):
        for side in TEXTS:
            forms[side].append(_form(place, side, row.get(side)))
        value = _number(place, row)
        relevant.append(value > 0 if positive is None else value >= positive)
    queries, documents = (text_keys(forms[side]) for side in TEXTS)
    return Judgements(queries=queries, documents=documents, relevant=np.array(relevant, bool))


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


def match_all(judgements: Judgements, folder: Path) -> tuple[dict[str, Matched], int]:
    """Return the judgements about each domain of a pairs folder, and how many are about no domain."""
    matched = {domain: match(judgements, folder, domain) for domain in domains(folder)}
    about = np.unique(np.concatenate([of.numbers for of in matched.values()]))
    return matched, len(judgements) - len(about)


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
) -> tuple[NDArray[np.int32], NDArray[np.bool_], int]:
    """Return ``judged`` and ``relevant`` as ``Negatives`` has them, and how many judgements were overruled.

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
    overruled = ~matched.relevant & (paired | relevant)[of_cells]
    new = mentioned & ~paired
    return every[new], relevant[new], int(np.count_nonzero(overruled))
