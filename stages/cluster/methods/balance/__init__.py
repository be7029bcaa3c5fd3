"""The default method: clusters of equal size, improved by exchanging pairs."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.bar import bar
from batchwright.core.neighbours import knn
from batchwright.formats.vectors import PairVectors
from stages.cluster.methods.balance import cells
from stages.cluster.methods.balance.equal import equal_clusters, improve
from stages.cluster.methods.balance.exchange import exchange_pairs
from stages.cluster.methods.lloyd import joint_points
from stages.cluster.params import ClusterParams
from stages.cluster.side_sums import assign, side_sums

SWEEPS = 3

Members = NDArray[np.int64]


def balanced(vectors: PairVectors, params: ClusterParams, seed: int) -> NDArray[np.int32]:
    """Build clusters of exactly ``cluster_size`` pairs that directly maximise eq. 2, the sum of S_q.S_d.

    Works on one cell at a time, with at most ``resident_pairs`` pairs and ``cells.MOST_CLUSTERS`` clusters. This bounds
    memory and makes the cost linear in N. Clusters then exchange pairs across the borders of cells. The
    ``N % cluster_size`` pairs left over, drawn at random, join the clusters to which they add most.

    Returns:
        The cluster of each pair, ``(N,)``.
    """
    size = params.cluster_size
    k = len(vectors) // size
    if k == 0:
        return np.zeros(len(vectors), dtype=np.int32)
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(vectors))
    most = max(1, min(cells.MOST_CLUSTERS, params.resident_pairs // size))
    members = _members(vectors, np.sort(shuffled[: k * size]), size, most, params.iterations, rng)
    assignment = assign(members, len(vectors))
    if len(rest := shuffled[k * size :]):
        assignment[rest] = _best(joint_points(vectors, rest), side_sums(vectors, assignment, k))
    return assignment


def _best(points: NDArray[np.float32], sums: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the cluster to which each point [q | d] adds most, q.S_d + d.S_q, given the sums ``(k, 2, d)``."""
    swapped = sums[:, ::-1].reshape(len(sums), -1)
    found: NDArray[np.int64] = knn(points, swapped, 1, inner_product=True)[1]
    return found[:, 0]


def _members(
    vectors: PairVectors, pairs: NDArray[np.int64], size: int, most: int, iterations: int, rng: np.random.Generator
) -> Members:
    """Cluster ``pairs`` ``(k * size,)``; return the row numbers ``(k, size)`` of each cluster's members."""
    parts = cells.split_into_cells(vectors, pairs, size, most, rng)
    found = []
    for cell in bar(parts, desc="cells", unit="cell"):
        points = joint_points(vectors, cell)
        found.append(cell[exchange_pairs(points, equal_clusters(points, size, iterations, rng), rng)])
    members = np.concatenate(found)
    for sweep in range(SWEEPS if len(parts) > 1 else 0):
        groups = cells.regroup(vectors, members, most, rng)
        title = f"borders, {sweep + 1} of {SWEEPS}"
        for group in bar(groups, desc=title, unit="group"):
            rows = members[group]
            points = joint_points(vectors, rows.ravel())
            clusters = np.arange(rows.size).reshape(rows.shape)
            members[group] = rows.ravel()[exchange_pairs(points, improve(points, clusters), rng)]
    return members
