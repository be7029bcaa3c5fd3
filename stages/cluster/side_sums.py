"""Sums of a cluster's query vectors and of its document vectors."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from batchwright.formats.clusters import NONE
from batchwright.formats.vectors import PairVectors, blocks


def side_sums(vectors: PairVectors, assignment: NDArray[np.int32], k: int) -> NDArray[np.float32]:
    """Sums ``(k, 2, d)`` of query and of document vectors of each cluster; empty clusters are zero."""
    sums = np.zeros((k, 2, vectors.width), dtype=np.float32)
    members = np.flatnonzero(assignment != NONE)
    order = members[np.argsort(assignment[members], kind="stable")]
    for block in blocks(len(order)):
        rows = order[block]
        present, starts = np.unique(assignment[rows], return_index=True)
        # A row a cluster, a one for each of its members: many times faster than ``np.add.reduceat``.
        members_of = csr_array((np.ones(len(rows), np.float32), np.arange(len(rows)), np.append(starts, len(rows))))
        for side, found in enumerate((vectors.queries(rows), vectors.documents(rows))):
            sums[present, side] += members_of @ found
    return sums


def assign(members: NDArray[np.int64], pairs: int) -> NDArray[np.int32]:
    """The cluster ``(pairs,)`` of each pair, by the clusters' ``members`` ``(k, size)``; ``NONE`` for all others."""
    assignment = np.full(pairs, NONE, dtype=np.int32)
    assignment[members] = np.arange(len(members), dtype=np.int32)[:, None]
    return assignment


def side_centroids(vectors: PairVectors, assignment: NDArray[np.int32]) -> NDArray[np.float32]:
    """Mean query and mean document vector of each cluster, ``(K, 2, d)``; empty clusters are zero."""
    k = int(assignment.max(initial=0)) + 1
    sizes = np.maximum(np.bincount(assignment[assignment != NONE], minlength=k), 1).astype(np.float32)
    means: NDArray[np.float32] = side_sums(vectors, assignment, k) / sizes[:, None, None]
    return means
