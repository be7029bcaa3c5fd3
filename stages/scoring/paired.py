"""Differences of two systems on the same queries, with their standard errors.

No other module computes errors of scores: what a table says about a difference comes from here.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from batchwright.core.errors import InputError

_TINY = 1e-12


class Estimate(NamedTuple):
    """A mean with its standard error, and the two-sided p value of the hypothesis that the true mean is 0.

    Error and p are NaN if there are too few values to tell.
    """

    mean: float
    error: float
    p: float


def difference(ours: ArrayLike, theirs: ArrayLike) -> Estimate:
    """Estimate the mean of ``ours - theirs``, two arrays of one shape, as ``estimate`` does."""
    return estimate(np.subtract(ours, theirs, dtype=np.float64))


def estimate(values: ArrayLike) -> Estimate:
    """Estimate the mean of ``values``: one per query (or per seed) ``(n,)``, or one per seed and query ``(S, Q)``.

    Values ``(n,)`` are independent draws: the error is that of the paired t test. In ``(S, Q)`` both the seeds and
    the queries are draws, and every seed has answered every query: a crossed design with random effects of either
    side. The variance of the mean is that of the queries' effects / Q + that of the seeds' effects / S + that of what
    is left / SQ, each from its mean square (Searle, Casella, McCulloch: Variance Components, chapter 4), not below 0.
    Degrees of freedom are Satterthwaite's.
    """
    table = np.asarray(values, np.float64)
    if table.ndim == 2 and 1 not in table.shape:
        return _crossed(table)
    flat = table.ravel()
    if len(flat) < 2:
        return Estimate(float(flat.mean()), math.nan, math.nan)
    error = float(stats.sem(flat))
    return Estimate(float(flat.mean()), error, _p(float(flat.mean()), error, len(flat) - 1))


def unpaired(ours: ArrayLike, theirs: ArrayLike) -> Estimate:
    """Estimate the difference of the means of two systems on different queries, as Welch's t test does."""
    left, right = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    mean = float(left.mean() - right.mean())
    if min(len(left), len(right)) < 2:
        return Estimate(mean, math.nan, math.nan)
    error = math.hypot(float(stats.sem(left)), float(stats.sem(right)))
    if error < _TINY:  # values that are all the same, but for rounding
        return Estimate(mean, error, _p(mean, 0.0, 1))
    return Estimate(mean, error, float(stats.ttest_ind(left, right, equal_var=False).pvalue))


def by_query(several: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """Put several scores (of seeds, of systems) by query id into a table ``(S, Q)``, queries in the order of their ids.

    Raises:
        InputError: they were not all scored on the same queries.
    """
    queries = sorted(several[0])
    if any(sorted(scores) != queries for scores in several):
        raise InputError("scores to be compared are of different queries; score all systems again")
    return np.array([[scores[query] for query in queries] for scores in several])


def by_seed(
    ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Put the scores of two systems, of each seed by query id, into two tables ``(S, Q)`` to be compared.

    The first seeds are compared with each other, the second ones, and so on, as far as both systems have some.

    Raises:
        InputError: they were not all scored on the same queries.
    """
    seeds = min(len(ours), len(theirs))
    table = by_query([*ours[:seeds], *theirs[:seeds]])
    return table[:seeds], table[seeds:]


def _crossed(table: NDArray[np.float64]) -> Estimate:
    seeds, queries = table.shape
    mean = float(table.mean())
    by_seed, by_query_ = table.mean(axis=1), table.mean(axis=0)
    rest = table - by_seed[:, None] - by_query_ + mean
    left_over = float((rest**2).sum()) / ((seeds - 1) * (queries - 1))
    # A mean square below what is left over would mean a negative variance: the effect is then taken as 0.
    of_seeds = max(queries * float(by_seed.var(ddof=1)), left_over)
    of_queries = max(seeds * float(by_query_.var(ddof=1)), left_over)
    error = math.sqrt((of_seeds + of_queries - left_over) / table.size)
    squares = [(of_seeds, seeds - 1), (of_queries, queries - 1), (left_over, (seeds - 1) * (queries - 1))]
    spread = sum(square**2 / freedom for square, freedom in squares)
    freedom = (of_seeds + of_queries - left_over) ** 2 / spread if spread else queries - 1
    return Estimate(mean, error, _p(mean, error, freedom))


def _p(mean: float, error: float, freedom: float) -> float:
    if not error:
        return 0.0 if mean else 1.0
    return float(2 * stats.t.sf(abs(mean) / error, freedom))
