"""Sums of a cluster's query vectors and of its document vectors."""

import numpy as np
from numpy.typing import NDArray

from formats.clusters import NONE
from formats.vectors import PairVectors, blocks


def side_sums(vectors: PairVectors, assignment: NDArray[np.int32], k: int) -> NDArray[np.float32]:
    """Sums ``(k, 2, d)`` of query and of document vectors of each cluster; empty clusters are zero."""
    sums = np.zeros((k, 2, vectors.width), dtype=np.float32)
    members = np.flatnonzero(assignment != NONE)
    order = members[np.argsort(assignment[members], kind="stable")]
    for block in blocks(len(order)):
        present, starts = np.unique(assignment[order[block]], return_index=True)
        for side, found in enumerate((vectors.queries(order[block]), vectors.documents(order[block]))):
            sums[present, side] += np.add.reduceat(found, starts, axis=0)
    return sums


def side_centroids(vectors: PairVectors, assignment: NDArray[np.int32]) -> NDArray[np.float32]:
    """Mean query and mean document vector of each cluster, ``(K, 2, d)``; empty clusters are zero."""
    k = int(assignment.max(initial=0)) + 1
    sizes = np.maximum(np.bincount(assignment[assignment != NONE], minlength=k), 1).astype(np.float32)
    means: NDArray[np.float32] = side_sums(vectors, assignment, k) / sizes[:, None, None]
    return means
