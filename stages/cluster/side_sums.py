"""Sums and means of the query vectors and of the document vectors in each cluster."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from batchwright.by_domain.spread import Map
from batchwright.core.spill import spilled
from batchwright.formats.clusters import NONE
from batchwright.formats.vectors import PairVectors, blocks


def side_sums(vectors: PairVectors, assignment: NDArray[np.int32], k: int, do_parts: Map = map) -> NDArray[np.float32]:
    """Return the sums ``(k, 2, d)`` of each cluster's query vectors and document vectors; zero for empty clusters."""
    sums: NDArray[np.float32] = spilled((k, 2, vectors.width), np.float32)
    order = np.argsort(assignment, kind="stable")[np.count_nonzero(assignment == NONE) :]  # these come first
    for present, found in do_parts(
        partial(_sums_of, vectors, assignment), (order[block] for block in blocks(len(order)))
    ):
        sums[present] += found
    return sums


def _sums_of(
    vectors: PairVectors, assignment: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the clusters that ``rows`` belong to, in whose order they are, and the sums of these rows alone."""
    present, starts = np.unique(assignment[rows], return_index=True)
    # Multiplying by a membership matrix is many times faster than ``np.add.reduceat``.
    members_of = csr_array((np.ones(len(rows), np.float32), np.arange(len(rows)), np.append(starts, len(rows))))
    return present, np.stack([members_of @ found for found in (vectors.queries(rows), vectors.documents(rows))], axis=1)


def assign(members: NDArray[np.int64], pairs: int) -> NDArray[np.int32]:
    """Return the cluster of each pair, ``(pairs,)``, given the ``members`` ``(k, size)``; ``NONE`` for other pairs."""
    assignment = np.full(pairs, NONE, dtype=np.int32)
    assignment[members] = np.arange(len(members), dtype=np.int32)[:, None]
    return assignment


def side_centroids(vectors: PairVectors, assignment: NDArray[np.int32], do_parts: Map = map) -> NDArray[np.float32]:
    """Return the mean query vector and mean document vector of each cluster, ``(K, 2, d)``; zero for empty clusters."""
    k = int(assignment.max(initial=0)) + 1
    sizes = np.maximum(np.bincount(assignment[assignment != NONE], minlength=k), 1).astype(np.float32)
    means = side_sums(vectors, assignment, k, do_parts)
    means /= sizes[:, None, None]
    return means
