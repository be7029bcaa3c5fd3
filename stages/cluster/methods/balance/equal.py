"""Clusters of equal size from points in memory."""

import faiss
import numpy as np
from numpy.typing import NDArray

from stages.cluster.methods.balance.fill import Nearest, fill
from stages.cluster.methods.lloyd import train

CANDIDATES = 8
STEPS = 4
LEAST_GAIN = 1e-3

Clusters = NDArray[np.int64]


def equal_clusters(points: NDArray[np.float32], size: int, iterations: int, rng: np.random.Generator) -> Clusters:
    """Row numbers ``(k, size)`` of points [q | d] ``(k * size, 2 d)``: K-Means on q + d, its clusters filled
    with as many points as they may hold, then improved."""
    k = len(points) // size
    if k == 1:
        return np.arange(size)[None]
    queries, documents = np.split(points, 2, axis=1)
    centroids = train(queries + documents, k, iterations=iterations, seed=int(rng.integers(2**31)))
    start = _fill(_nearest(points, np.concatenate([centroids, centroids], axis=1)), k, size)
    return improve(points, start)


def improve(points: NDArray[np.float32], clusters: Clusters) -> Clusters:
    """Clusters ``(k, size)`` with a greater sum of S_q.S_d; never a smaller one.

    In a step every point asks for the clusters to whose sum it would add most. Steps end when one gains less
    than ``LEAST_GAIN``.
    """
    queries, documents = np.split(points, 2, axis=1)
    own = np.einsum("nd,nd->n", queries, documents)
    sums = _sums(points, clusters)
    value = _value(sums)
    for _ in range(STEPS):
        # [S_d | S_q]: a point's product with it is what the point adds to S_q.S_d, its own q.d aside.
        nearest = _nearest(points, np.roll(sums, sums.shape[1] // 2, axis=1))
        trial = _fill(_without_own(nearest, own, clusters), *clusters.shape)
        sums = _sums(points, trial)
        gained = _value(sums) - value
        if gained > 0:
            clusters, value = trial, value + gained
        if gained < LEAST_GAIN * abs(value):
            break
    return clusters


def _fill(nearest: Nearest, k: int, size: int) -> Clusters:
    placed = fill(nearest, k * size, np.full(k, size))
    return np.argsort(placed, kind="stable").reshape(k, size)


def _nearest(points: NDArray[np.float32], targets: NDArray[np.float32]) -> Nearest:
    def nearest(waiting: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        most = min(CANDIDATES, len(places))
        asking = points if len(waiting) == len(points) else points[waiting]
        scores, best = faiss.knn(asking, targets[places], most, metric=faiss.METRIC_INNER_PRODUCT)
        return scores, best

    return nearest


def _without_own(nearest: Nearest, own: NDArray[np.float32], clusters: Clusters) -> Nearest:
    """``nearest`` less what the sums of a point's present cluster hold of the point itself: twice its q.d."""
    at = np.empty(clusters.size, dtype=np.int64)
    at[clusters] = np.arange(len(clusters))[:, None]

    def corrected(
        waiting: NDArray[np.int64], places: NDArray[np.int64]
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
