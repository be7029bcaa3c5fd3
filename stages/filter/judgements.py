"""Read judgements from outside: whether a document answers a query."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import text_keys
from batchwright.core.normal_form import normal_form
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
