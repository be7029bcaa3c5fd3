"""A table, and how numbers look in it."""

import re
from dataclasses import dataclass

NONE = "-"


@dataclass(frozen=True, kw_only=True)
class Table:
    """``groups`` are headings over several columns, with their number; ``best`` are places ``(row, column)``."""

    header: list[str]
    rows: list[list[str]]
    groups: list[tuple[str, int]] | None = None
    best: frozenset[tuple[int, int]] = frozenset()
    words: frozenset[int] = frozenset({0})
    """Columns of words; the others hold numbers."""


def share(value: float) -> str:
    """Three decimals without the zero before the point: ``.676``."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.3f}")
