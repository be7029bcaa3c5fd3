"""K-Means over the sums of query and document vectors."""

import math

import faiss
import numpy as np
from numpy.typing import NDArray


def cluster_pairs(
    queries: NDArray[np.float32], documents: NDArray[np.float32], *, cluster_size: int, iterations: int, seed: int
) -> NDArray[np.int32]:
    """Assign pairs ``(N, d)``, ``(N, d)`` to ``ceil(N / cluster_size)`` clusters.

    K-Means on q + d maximises |S_q|^2 + |S_d|^2 + 2 S_q.S_d over the clusters' sums S; the last term is
    the objective of Contextual Document Embeddings (eq. 2). All pairs train the centroids: FAISS would
    take a sample of 256 a centroid.
    """
    points = queries + documents
    k = math.ceil(len(points) / cluster_size)
    if k <= 1:
        return np.zeros(len(points), dtype=np.int32)
    kmeans = faiss.Kmeans(
        points.shape[1], k, niter=iterations, seed=seed, min_points_per_centroid=1, max_points_per_centroid=len(points)
    )
    kmeans.train(points)
    return kmeans.index.search(points, 1)[1][:, 0].astype(np.int32)


def side_centroids(
    queries: NDArray[np.float32], documents: NDArray[np.float32], assignment: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Mean query and mean document vector of each cluster, ``(K, 2, d)``; empty clusters are zero."""
    k = int(assignment.max(initial=0)) + 1
    sums = np.zeros((k, 2, queries.shape[1]), dtype=np.float32)
    order = np.argsort(assignment, kind="stable")
    present, starts = np.unique(assignment[order], return_index=True)
    for side, vectors in enumerate((queries, documents)):
        sums[present, side] = np.add.reduceat(vectors[order], starts, axis=0)
    sizes = np.maximum(np.bincount(assignment, minlength=k), 1).astype(np.float32)
    means: NDArray[np.float32] = sums / sizes[:, None, None]
    return means
