"""Rules for the score at which a document becomes a false negative."""

import numpy as np
from numpy.typing import NDArray

from stages.filter.params import FilterParams

ROUNDING = np.float32(2**-18)
"""Scores of unit vectors that differ by less than this are equal, because float32 sums depend on their order."""


def thresholds(scores: NDArray[np.float32], params: FilterParams) -> NDArray[np.float32]:
    """Return each query's lowest score of a false negative, ``(N,)``, given its own document's ``scores`` ``(N,)``.

    Without a rule for scores, every score is high enough.
    """
    if params.threshold is not None:
        return np.full_like(scores, params.threshold)
    if params.margin is None and params.factor is None:
        return np.full_like(scores, -np.inf)
    allowance = (
        np.abs(scores) * np.float32(params.factor) if params.factor is not None else np.float32(params.margin or 0)
    )
    lowest: NDArray[np.float32] = scores - allowance - ROUNDING
    return lowest
