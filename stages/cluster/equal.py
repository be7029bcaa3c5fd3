"""Clusters of equal size, from points in memory: filled by deferred acceptance, then improved."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.grid import rounded
from batchwright.core.neighbours import kmeans, knn
from batchwright.core.spill import slices
from stages.cluster.apart import Classes, first_of_class, of_some, separate, shared

CANDIDATES = 8
"""Clusters that a point may be put into, at a time."""
STEPS = 4
LEAST_GAIN = 1e-3

Clusters = NDArray[np.int64]
Nearest = Callable[[NDArray[np.int32], NDArray[np.int64]], tuple[NDArray[np.float32], NDArray[Any]]]
"""Takes the numbers of n points and of places. Returns each point's m best places, best first: their scores ``(n, m)``
and their indices ``(n, m)`` into the given places."""


def equal_clusters(
    points: NDArray[np.float32], size: int, iterations: int, rng: np.random.Generator, classes: Classes | None = None
) -> Clusters:
    """Divide points [q | d] ``(k * size, 2 d)`` into ``k`` clusters; return their row numbers ``(k, size)``.

    Runs K-Means on q + d, fills each cluster with exactly ``size`` points, then improves the clusters.
    """
    k = len(points) // size
    if k == 1:
        return np.arange(size)[None]
    queries, documents = np.split(points, 2, axis=1)
    centroids = kmeans(queries + documents, k, iterations=iterations, seed=int(rng.integers(2**31)))
    start = _fill(_nearest(points, np.concatenate([centroids, centroids], axis=1)), k, size, classes)
    return improve(points, start, classes)


def improve(points: NDArray[np.float32], clusters: Clusters, classes: Classes | None = None) -> Clusters:
    """Reassign points so that the sum of S_q.S_d over ``clusters`` ``(k, size)`` grows; it never shrinks.

    In each of at most ``STEPS`` steps, every point proposes to the clusters to whose sum it would add most. Stops once
    a step gains less than the fraction ``LEAST_GAIN``.
    """
    size = np.float32(clusters.shape[1])
    queries, documents = np.split(points, 2, axis=1)
    own = np.einsum("nd,nd->n", queries, documents) / size
    sums = _sums(points, clusters)
    value = _value(sums)
    for _ in range(STEPS):
        # A point's product with [S_d | S_q] is what it adds to S_q.S_d, apart from its own q.d. Here all are means.
        nearest = _nearest(points, np.roll(rounded(sums / size), sums.shape[1] // 2, axis=1))
        trial = _fill(_without_own(nearest, own, clusters), len(clusters), clusters.shape[1], classes)
        sums = _sums(points, trial)
        gained = _value(sums) - value
        if gained > 0:
            clusters, value = trial, value + gained
        if gained < LEAST_GAIN * abs(value):
            break
    return clusters


def _fill(nearest: Nearest, k: int, size: int, classes: Classes | None) -> Clusters:
    placed = fill(nearest, k * size, np.full(k, size), classes)
    return np.argsort(placed, kind="stable").reshape(k, size)


def _nearest(points: NDArray[np.float32], targets: NDArray[np.float32]) -> Nearest:
    def nearest(waiting: NDArray[np.int32], places: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        most = min(CANDIDATES, len(places))
        asking = points if len(waiting) == len(points) else points[waiting]
        scores, best = knn(asking, targets[places], most, inner_product=True)
        return scores, best

    return nearest


def _without_own(nearest: Nearest, own: NDArray[np.float32], clusters: Clusters) -> Nearest:
    """Make ``nearest`` subtract 2 q.d, a point's own contribution, from its score for its current cluster."""
    at = np.empty(clusters.size, dtype=np.int64)
    at[clusters] = np.arange(len(clusters))[:, None]

    def corrected(
        waiting: NDArray[np.int32], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        scores, best = nearest(waiting, places)
        scores -= (places[best] == at[waiting, None]) * (2 * own[waiting, None])
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(best, order, axis=1)

    return corrected


def _sums(points: NDArray[np.float32], clusters: Clusters) -> NDArray[np.float32]:
    return np.stack([points[rows].sum(axis=0) for rows in clusters])


def _value(sums: NDArray[np.float32]) -> float:
    queries, documents = np.split(sums, 2, axis=1)
    return float(np.einsum("kd,kd->", queries, documents, dtype=np.float64))


def fill(
    nearest: Nearest, points: int, capacities: NDArray[np.int64], classes: Classes | None = None
) -> NDArray[np.int32]:
    """Return the place of each point, ``(points,)``, by deferred acceptance (Gale and Shapley, 1962).

    Each point proposes to its best place. A full place keeps its best points and rejects the others, which propose to
    their next choice. Of points of one class, a place keeps the best one, where others are left for the rest.
    ``capacities`` must sum to ``points``.
    """
    placed = np.full(points, -1, dtype=np.int32)
    waiting = np.arange(points, dtype=np.int32)
    free, apart = capacities.copy(), classes
    while len(waiting):
        places = np.flatnonzero(free)
        scores, best = nearest(waiting, places)
        of_waiting = of_some(apart, waiting)
        if apart is not None and of_waiting is not None:
            held = placed >= 0
            scores[shared(places[best], of_waiting, placed[held], apart[:, held])] = -np.inf
        accepted = _accept(scores, best, free[places], of_waiting)
        taken = accepted >= 0
        placed[waiting[taken]] = places[accepted[taken]]
        free -= np.bincount(placed[waiting[taken]], minlength=len(free))
        waiting = waiting[~taken]
        apart = apart if taken.any() else None
    return placed if classes is None or apart is not None else separate(placed, classes)


def _accept(
    scores: NDArray[np.float32], best: NDArray[Any], capacities: NDArray[np.int64], classes: Classes | None
) -> NDArray[np.int32]:
    """Return the place of each point, or -1 if every place that it proposed to is full of better points."""
    points, choices = best.shape
    choice = np.zeros(points, dtype=np.int32)
    at = np.full(points, -1, dtype=np.int32)
    score = np.zeros(points, dtype=np.float32)
    free = np.arange(points, dtype=np.int32)
    while len(free):
        for block in slices(len(free)):
            some = free[block]
            at[some], score[some] = best[some, choice[some]], scores[some, choice[some]]
        proposed_to = np.zeros(len(capacities) + 1, dtype=bool)  # the last place, -1, stands for none
        proposed_to[at[free]] = True
        free = _rejected(at, score, capacities, proposed_to, classes)
        at[free] = -1
        choice[free] += 1
        free = free[choice[free] < choices]
    return at


def _rejected(
    at: NDArray[np.int32],
    score: NDArray[np.float32],
    capacities: NDArray[np.int64],
    proposed_to: NDArray[np.bool_],
    classes: Classes | None,
) -> NDArray[np.int32]:
    """Return the points for which there is no room in the places that were ``proposed_to``."""
    there = np.flatnonzero(proposed_to[at]).astype(np.int32)
    there = there[np.lexsort((-score[there], at[there]))]
    worse = there[:0]
    if classes is not None:
        alone = first_of_class(at[there], classes[:, there]) & (score[there] > -np.inf)
        worse, there = there[~alone], there[alone]
    ends = np.cumsum(np.bincount(at[there], minlength=len(capacities)))
    starts = np.append(0, ends[:-1]) + capacities
    full = np.flatnonzero(starts < ends)
    return np.concatenate([worse, *(there[starts[place] : ends[place]] for place in full)])
