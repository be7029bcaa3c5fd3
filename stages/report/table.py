"""Tables, and how numbers look in them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NONE = "-"

Place = tuple[int, int]
"""Row and column of a cell."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table. ``groups`` are headings with the number of columns that each spans; ``best`` are the cells in bold."""

    header: list[str]
    rows: list[list[str]]
    groups: list[tuple[str, int]] | None = None
    best: frozenset[Place] = frozenset()
    words: frozenset[int] = frozenset({0})
    """Columns that contain words; the others contain numbers."""


def share(value: float) -> str:
    """Format a number with three decimals and without a zero before the point: ``.676``."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.3f}")


def signed(difference: float, error: float) -> str:
    """Format a difference with its standard error: ``+.034 ± .003``."""
    return f"{'+' if difference > 0 else ''}{share(difference)} ± {share(error)}"


def best_of_columns(rows: Sequence[Sequence[str]]) -> frozenset[Place]:
    """Return the cells with the highest number of each column except the first; all of them if several look equal."""
    return _best(rows, [[(row, column) for row in range(len(rows))] for column in range(1, len(rows[0]))])


def best_of_rows(rows: Sequence[Sequence[str]]) -> frozenset[Place]:
    """Return the cells with the highest number of each row; all of them if several look equal."""
    return _best(rows, [[(row, column) for column in range(1, len(cells))] for row, cells in enumerate(rows)])


def _best(rows: Sequence[Sequence[str]], lines: Iterable[Sequence[Place]]) -> frozenset[Place]:
    found: set[Place] = set()
    for line in lines:
        numbers = {(row, column): float(rows[row][column]) for row, column in line if rows[row][column] != NONE}
        highest = max(numbers.values(), default=None)
        found |= {place for place, number in numbers.items() if number == highest}
    return frozenset(found)
