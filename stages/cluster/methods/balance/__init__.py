"""The default method: clusters of equal size, improved by exchanging pairs."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map, unless_beam
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
Part = tuple[PairVectors, list[int]]
"""The vectors of a cell, or of a group of clusters one after the other, and a seed of its own."""


def balanced(vectors: PairVectors, params: ClusterParams, seed: int, do_parts: Map = map) -> NDArray[np.int32]:
    """Build clusters of exactly ``cluster_size`` pairs that directly maximise eq. 2, the sum of S_q.S_d.

    Works on cells of at most ``resident_pairs`` pairs and ``cells.MOST_CLUSTERS`` clusters, each on its own. This
    bounds memory and makes the cost linear in N. Clusters then exchange pairs across the borders of cells. The
    ``N % cluster_size`` pairs left over, drawn at random, join the clusters to which they add most.

    Returns:
        The cluster of each pair, ``(N,)``.
    """
    size = params.cluster_size
    k = len(vectors) // size
    if k == 0:
        return np.zeros(len(vectors), dtype=np.int32)
    pairs, rest = np.split(np.random.default_rng(seed).permutation(len(vectors)), [k * size])
    pairs.sort()
    members = _members(vectors, pairs, cells.most_clusters(params), params, seed, do_parts)
    assignment = assign(members, len(vectors))
    if len(rest):
        assignment[rest] = _best(joint_points(vectors, rest), side_sums(vectors, assignment, k, unless_beam(do_parts)))
    return assignment


def _best(points: NDArray[np.float32], sums: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the cluster to which each point [q | d] adds most, q.S_d + d.S_q, given the sums ``(k, 2, d)``."""
    swapped = sums[:, ::-1].reshape(len(sums), -1)
    found: NDArray[np.int64] = knn(points, swapped, 1, inner_product=True)[1]
    return found[:, 0]


def _members(
    vectors: PairVectors, pairs: NDArray[np.int64], most: int, params: ClusterParams, seed: int, do_parts: Map
) -> Members:
    """Cluster ``pairs`` ``(k * size,)``; return the row numbers ``(k, size)`` of each cluster's members."""
    size, do_lightly = params.cluster_size, unless_beam(do_parts)
    parts = cells.split_into_cells(vectors, pairs, size, most, np.random.default_rng([seed, 1]), do_lightly)
    given = ((vectors.take(cell), [seed, 1, number]) for number, cell in enumerate(parts, start=1))
    found = do_parts(partial(_cluster_cell, size, params.iterations), given)
    members = np.concatenate([cell[clusters] for cell, clusters in zip(parts, found, strict=True)])
    for sweep in range(2, 2 + SWEEPS if len(parts) > 1 else 2):
        groups = cells.regroup(vectors, members, most, np.random.default_rng([seed, sweep]), do_lightly)
        given = (
            (vectors.take(members[of].ravel()), [seed, sweep, number]) for number, of in enumerate(groups, start=1)
        )
        found = do_parts(partial(_improve_group, size), given)
        members[np.concatenate(groups)] = np.concatenate(
            [members[of].ravel()[clusters] for of, clusters in zip(groups, found, strict=True)]
        )
    return members


def _cluster_cell(size: int, iterations: int, part: Part) -> Members:
    """Return the members ``(k, size)`` of a cell's clusters, as places in the cell."""
    vectors, seed = part
    rng = np.random.default_rng(seed)
    points = joint_points(vectors, slice(None))
    return exchange_pairs(points, equal_clusters(points, size, iterations, rng), rng)


def _improve_group(size: int, part: Part) -> Members:
    """Return the members ``(k, size)`` of a group's clusters after exchanges, as places in the group."""
    vectors, seed = part
    points = joint_points(vectors, slice(None))
    clusters = np.arange(len(vectors)).reshape(-1, size)
    return exchange_pairs(points, improve(points, clusters), np.random.default_rng(seed))
