"""K-Means with FAISS in bounded memory, on GPUs if FAISS finds any."""

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.core.neighbours import on_gpu
from batchwright.formats.vectors import PairVectors, Rows

EARLY_STOP = 1e-3


def sum_points(vectors: PairVectors, pairs: Rows) -> NDArray[np.float32]:
    """Return q + d, ``(n, d)``.

    On these points, K-Means maximises |S_q|^2 + |S_d|^2 + 2 S_q.S_d, where S_q and S_d are the sums of a cluster's
    queries and documents. The last term is the objective of Contextual Document Embeddings (eq. 2).
    """
    points: NDArray[np.float32] = vectors.queries(pairs) + vectors.documents(pairs)
    return points


def joint_points(vectors: PairVectors, pairs: Rows) -> NDArray[np.float32]:
    """Return [q | d], ``(n, 2 d)``. On these points, K-Means maximises |S_q|^2 + |S_d|^2."""
    rows = vectors.rows[:, pairs]
    points = np.empty((rows.shape[1], 2 * vectors.width), dtype=np.float32)
    for own, side in zip(rows, np.split(points, 2, axis=1), strict=True):
        side[:] = vectors.vectors[own]  # converts from float16 straight into place, without a copy in between
    return points


def train(points: NDArray[np.float32], k: int, *, iterations: int, seed: int) -> NDArray[np.float32]:
    """Return centroids ``(k, d)`` after ``iterations`` Lloyd steps, or fewer if one gains less than a thousandth."""
    kmeans = faiss.Kmeans(
        points.shape[1],
        k,
        niter=iterations,
        seed=seed,
        gpu=on_gpu(),
        min_points_per_centroid=1,
        max_points_per_centroid=len(points),
        early_stop_threshold=EARLY_STOP,
    )
    kmeans.train(points)
    return np.asarray(kmeans.centroids, dtype=np.float32)


def sample(pairs: int, most: int, seed: int) -> Rows:
    """Select all pairs, or ``most`` of them at random, in ascending order."""
    if pairs <= most:
        return slice(0, pairs)
    return np.sort(np.random.default_rng(seed).choice(pairs, size=most, replace=False))
