"""Labels: a column that says which rows of a table are pairs, because the others were found not to match."""

import math
from typing import Self

from pydantic import Field, model_validator

from batchwright.core.params import Params

NO_MATCH = "the label says that it is no pair"
"""Why a row without a fault was left out."""


class Labels(Params):
    """Keeps rows by a column of labels or scores."""

    column: str
    """The column that holds the labels or scores."""
    positive: list[bool | float | str] = Field(default=[])
    """Rows with one of these labels are pairs, such as ``[1]``; set either this or ``at_least``."""
    at_least: float | None = None
    """Rows with this score or more are pairs; set either this or ``positive``."""

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if bool(self.positive) == (self.at_least is not None):
            raise ValueError("give either 'positive' (labels) or 'at_least' (a number)")
        return self

    def fault(self, value: object) -> str | None:
        """Why a row with this label is no pair, or None if it is one."""
        if value is None or value == "":
            return "no label"
        if self.at_least is None:
            return None if label_of(value) in map(label_of, self.positive) else NO_MATCH
        score = number_of(value)
        if score is None:
            return "label is not a number"
        return None if score >= self.at_least else NO_MATCH


def label_of(value: object) -> str:
    """One spelling of a label: 1, 1.0 and "1" are the same, and so are true and "True"."""
    number = number_of(value)
    return f"{number:g}" if number is not None and not isinstance(value, bool) else str(value).strip().casefold()


def number_of(value: object) -> float | None:
    """The number that a value is or spells, or None; true is 1."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
