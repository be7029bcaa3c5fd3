"""The few numbers that ``dvc metrics show`` and ``dvc exp show`` show."""

from collections.abc import Mapping
from typing import Any

MOST_RUNS = 8
"""So many columns fit beside one another on a terminal; ``results/compare.tsv`` has all runs."""


def headline(packed: Mapping[str, Any], quality: Mapping[str, float]) -> dict[str, float]:
    """Return what contextual batches are like, from their metrics ``packed``, and the nDCG@10 of the first runs."""
    batches = {"hardness": packed["hardness"], "masked": packed["masked_share"]}
    runs = dict(list(quality.items())[:MOST_RUNS])
    return {name: round(float(value), 4) for name, value in {**batches, **runs}.items()}
