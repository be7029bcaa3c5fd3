"""The few numbers that ``dvc metrics show`` and ``dvc exp show`` show."""

from collections.abc import Iterable, Mapping
from typing import Any

WIDTH, MOST = 120, 11
"""The line of ``dvc metrics show`` has at most so many characters, and so many columns."""
PATH = "results/metrics.json"
DIGITS = 4


def headline(packed: Mapping[str, Any], quality: Mapping[str, float]) -> dict[str, float]:
    """Return what contextual batches are like, from their metrics ``packed``, and the nDCG@10 of runs.

    The first runs are shown, as many as the line has room for; ``results/compare.tsv`` has all.
    """
    values = {"hardness": packed["hardness"], "masked": packed["masked_share"], **quality}
    names = list(values)
    while len(names) > MOST or _width(names) > WIDTH:
        names.pop()
    return {name: round(float(values[name]), DIGITS) for name in names}


def _width(names: Iterable[str]) -> int:
    """Return the width of the line: four spaces separate columns, none narrower than a value such as 0.1234."""
    return len(PATH) + sum(4 + max(len(name), 2 + DIGITS) for name in names)
