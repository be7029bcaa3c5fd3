"""When a curve reaches a goal."""

import numpy as np
from numpy.typing import NDArray


def share_to_reach(steps: NDArray[np.float64], ndcg: NDArray[np.float64], goal: float) -> float:
    """The share of the steps after which a curve first reaches ``goal``, between points on a straight line; infinite
    if it never does."""
    reached = np.flatnonzero(ndcg >= goal)
    if not len(reached):
        return float("inf")
    last = int(reached[0])
    if last == 0:
        return float(steps[0] / steps[-1])
    before = last - 1
    part = (goal - ndcg[before]) / (ndcg[last] - ndcg[before])
    return float((steps[before] + part * (steps[last] - steps[before])) / steps[-1])
