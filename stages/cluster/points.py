"""Points that K-Means runs on, and the sums and means of the pairs in clusters."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from batchwright.by_domain.spread import Map
from batchwright.core.grid import COARSE, rounded
from batchwright.core.spill import spilled
from batchwright.formats.clusters import NONE
from batchwright.formats.vectors import PairVectors, Rows, blocks


def sum_points(vectors: PairVectors, pairs: Rows) -> NDArray[np.float32]:
    """Return q + d, ``(n, d)``, in steps of ``COARSE``.

    On these points, K-Means maximises |S_q|^2 + |S_d|^2 + 2 S_q.S_d, where S_q and S_d are the sums of a cluster's
    queries and documents. The last term is the objective of Contextual Document Embeddings (eq. 2).
    """
    return rounded(vectors.queries(pairs) + vectors.documents(pairs), COARSE)


def joint_points(vectors: PairVectors, pairs: Rows) -> NDArray[np.float32]:
    """Return [q | d], ``(n, 2 d)``. On these points, K-Means maximises |S_q|^2 + |S_d|^2."""
    rows = vectors.rows[:, pairs]
    points = np.empty((rows.shape[1], 2 * vectors.width), dtype=np.float32)
    for of_side, side in zip(rows, np.split(points, 2, axis=1), strict=True):
        side[:] = vectors.vectors[of_side]  # converts from float16 straight into place, without a copy in between
    return points


def sample(pairs: int, most: int, seed: int) -> Rows:
    """Select all pairs, or ``most`` of them at random, in ascending order."""
    if pairs <= most:
        return slice(0, pairs)
    return np.sort(np.random.default_rng(seed).choice(pairs, size=most, replace=False))


def side_sums(vectors: PairVectors, assignment: NDArray[np.int32], k: int, do_parts: Map = map) -> NDArray[np.float32]:
    """Return the sums ``(k, 2, d)`` of each cluster's query vectors and document vectors; zero for empty clusters."""
    sums: NDArray[np.float32] = spilled((k, 2, vectors.width), np.float32)
    order = np.argsort(assignment, kind="stable")[np.count_nonzero(assignment == NONE) :]  # these come first
    rows = (order[block] for block in blocks(len(order)))
    for present, sums_of_rows in do_parts(partial(_sums_of, vectors, assignment), rows):
        sums[present] += sums_of_rows
    return sums


def _sums_of(
    vectors: PairVectors, assignment: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the clusters that ``rows`` belong to, in whose order they are, and the sums of these rows alone."""
    present, starts = np.unique(assignment[rows], return_index=True)
    # Multiplying by a membership matrix is many times faster than ``np.add.reduceat``.
    members_of = csr_array((np.ones(len(rows), np.float32), np.arange(len(rows)), np.append(starts, len(rows))))
    return present, np.stack([members_of @ vectors.queries(rows), members_of @ vectors.documents(rows)], axis=1)


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
