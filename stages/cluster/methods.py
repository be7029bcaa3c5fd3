"""Clustering methods. ``balanced`` makes clusters of equal size, cell by cell.

To add a method, write a function of type ``Method`` in a module of its own; list it in ``METHODS`` and in
``ClusterParams.method``.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map, unless_beam
from batchwright.core.grid import COARSE, rounded
from batchwright.core.neighbours import kmeans, knn, processes
from batchwright.core.spill import spilled
from batchwright.formats.vectors import PairVectors, blocks
from stages.cluster.apart import Classes, join, of_some
from stages.cluster.equal import Nearest, equal_clusters, fill, improve
from stages.cluster.exchange import exchange_pairs
from stages.cluster.params import ClusterParams
from stages.cluster.points import assign, joint_points, sample, side_sums, sum_points

SWEEPS = 3
"""Times that clusters exchange pairs across the borders of cells."""
MOST_CLUSTERS = 512
"""Of a cell."""
CANDIDATES = 8
"""Cells that a pair may be put into, at a time."""
LEFT_OVER_CANDIDATES = 64
"""Clusters that a left-over pair may join if pairs of its query or document are in others."""
ITERATIONS, POINTS_PER_CELL = 10, 256
"""Of the K-Means that finds cells."""

Members = NDArray[np.int64]
Part = tuple[PairVectors, Classes | None, list[int]]
"""The vectors and classes of a cell, or of a group of clusters one after the other, and a seed of its own."""


class Method(Protocol):
    """Takes the pairs' vectors, the parameters, a seed, a ``map`` for parts of the work, and classes that pairs of a
    cluster must not share, if there are any.

    Returns the cluster of each pair, ``(N,)``.
    """

    def __call__(
        self,
        vectors: PairVectors,
        params: ClusterParams,
        seed: int,
        do_parts: Map = map,
        classes: Classes | None = None,
        /,
    ) -> NDArray[np.int32]:
        """Cluster the pairs."""


def balanced(
    vectors: PairVectors, params: ClusterParams, seed: int, do_parts: Map = map, classes: Classes | None = None
) -> NDArray[np.int32]:
    """Build clusters of exactly ``cluster_size`` pairs that directly maximise eq. 2, the sum of S_q.S_d.

    Works on cells of at most ``resident_pairs`` pairs and ``MOST_CLUSTERS`` clusters, each on its own. This
    bounds memory and makes the cost linear in N. Clusters then exchange pairs across the borders of cells. The
    ``N % cluster_size`` pairs left over, drawn at random, join the clusters to which they add most.
    Pairs of one class in ``classes`` ``(c, N)`` go to different clusters, where there are enough of them.

    Returns:
        The cluster of each pair, ``(N,)``.
    """
    size = params.cluster_size
    k = len(vectors) // size
    if k == 0:
        return np.zeros(len(vectors), dtype=np.int32)
    pairs, rest = np.split(np.random.default_rng(seed).permutation(len(vectors)), [k * size])
    pairs.sort()
    members = _members(vectors, classes, pairs, _most_clusters(params), params, seed, do_parts)
    assignment = assign(members, len(vectors))
    if len(rest):
        sums = side_sums(vectors, assignment, k, unless_beam(do_parts))
        best = _best(joint_points(vectors, rest), sums, size, 1 if classes is None else LEFT_OVER_CANDIDATES)
        assignment[rest] = best[:, 0] if classes is None else join(best, rest, members, classes)
    return assignment


METHODS: dict[str, Method] = {"balanced": balanced}


def _members(
    vectors: PairVectors,
    classes: Classes | None,
    pairs: NDArray[np.int64],
    most: int,
    params: ClusterParams,
    seed: int,
    do_parts: Map,
) -> Members:
    """Cluster ``pairs`` ``(k * size,)``; return the row numbers ``(k, size)`` of each cluster's members."""
    size, do_lightly = params.cluster_size, unless_beam(do_parts)
    parts = split_into_cells(vectors, pairs, size, most, np.random.default_rng([seed, 1]), do_lightly)
    seeded = (
        (vectors.take(cell), of_some(classes, cell), [seed, 1, number]) for number, cell in enumerate(parts, start=1)
    )
    of_cells = do_parts(partial(_cluster_cell, size, params.iterations), seeded)
    members = np.concatenate([cell[clusters] for cell, clusters in zip(parts, of_cells, strict=True)])
    for sweep in range(2, 2 + SWEEPS if len(parts) > 1 else 2):
        groups = regroup(vectors, members, most, np.random.default_rng([seed, sweep]), do_lightly)
        seeded = (
            (vectors.take(members[group].ravel()), of_some(classes, members[group].ravel()), [seed, sweep, number])
            for number, group in enumerate(groups, start=1)
        )
        of_groups = do_parts(partial(_improve_group, size), seeded)
        members[np.concatenate(groups)] = np.concatenate(
            [members[group].ravel()[clusters] for group, clusters in zip(groups, of_groups, strict=True)]
        )
    return members


def _cluster_cell(size: int, iterations: int, part: Part) -> Members:
    """Return the members ``(k, size)`` of a cell's clusters, as places in the cell."""
    vectors, classes, seed = part
    rng = np.random.default_rng(seed)
    points = joint_points(vectors, slice(None))
    return exchange_pairs(points, equal_clusters(points, size, iterations, rng, classes), rng, classes)


def _improve_group(size: int, part: Part) -> Members:
    """Return the members ``(k, size)`` of a group's clusters after exchanges, as places in the group."""
    vectors, classes, seed = part
    points = joint_points(vectors, slice(None))
    clusters = np.arange(len(vectors)).reshape(-1, size)
    return exchange_pairs(points, improve(points, clusters, classes), np.random.default_rng(seed), classes)


def _most_clusters(params: ClusterParams) -> int:
    """Clusters of a cell, or of a group of clusters."""
    return max(1, min(MOST_CLUSTERS, params.resident_pairs // params.cluster_size))


def cells_at_a_time(params: ClusterParams) -> int:
    """How many cells are done at a time: one a process, as far as they may be in memory."""
    in_memory = max(1, params.resident_pairs // (_most_clusters(params) * params.cluster_size))
    return min(processes(), in_memory)


def split_into_cells(
    vectors: PairVectors, pairs: NDArray[np.int64], size: int, most: int, rng: np.random.Generator, do_parts: Map = map
) -> list[NDArray[np.int64]]:
    """Split ``pairs`` into cells of at most ``most`` clusters; each cell's length is a multiple of ``size``."""
    capacities = size * _shares(len(pairs) // size, most)
    if len(capacities) == 1:
        return [pairs]
    seed = int(rng.integers(2**31))
    points = min(POINTS_PER_CELL * len(capacities), max(most * size, len(capacities)))  # at most one cell's pairs
    drawn = sample(len(pairs), points, seed)
    centroids = kmeans(sum_points(vectors, pairs[drawn]), len(capacities), iterations=ITERATIONS, seed=seed)
    placed = fill(_nearest(lambda some: sum_points(vectors, pairs[some]), centroids, do_parts), len(pairs), capacities)
    return [pairs[placed == cell] for cell in range(len(capacities))]


def regroup(
    vectors: PairVectors, members: NDArray[np.int64], most: int, rng: np.random.Generator, do_parts: Map
) -> list[NDArray[np.int64]]:
    """Group neighbouring clusters ``members`` ``(k, size)``, at most ``most`` per group, differently on each call."""
    capacities = _shares(len(members), most)
    sums = side_sums(vectors, assign(members, len(vectors)), len(members), do_parts)
    centroids = np.sum(sums, axis=1, out=spilled((len(members), vectors.width), np.float32))
    centroids[:] = rounded(centroids / np.float32(members.shape[1]), COARSE)
    targets = kmeans(centroids, len(capacities), iterations=ITERATIONS, seed=int(rng.integers(2**31)))
    placed = fill(_nearest(lambda some: centroids[some], targets), len(members), capacities)
    return [np.flatnonzero(placed == group) for group in range(len(capacities))]


def _nearest(
    points: Callable[[NDArray[np.int32]], NDArray[np.float32]], centroids: NDArray[np.float32], do_parts: Map = map
) -> Nearest:
    """Compare blocks of points with ``centroids``; ``points`` returns the vectors of some of them.

    Processes of ``do_parts`` must share memory with this one.
    """

    def nearest(waiting: NDArray[np.int32], places: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[Any]]:
        shape = len(waiting), min(CANDIDATES, len(places))
        scores, best = spilled(shape, np.float32), spilled(shape, np.int32)

        def compare(block: slice) -> tuple[NDArray[np.float32], NDArray[Any]]:
            return knn(points(waiting[block]), centroids[places], shape[1])

        slices = list(blocks(len(waiting)))
        for block, (distances, cells) in zip(slices, do_parts(compare, slices), strict=True):
            scores[block], best[block] = -distances, cells
        return scores, best

    return nearest


def _shares(clusters: int, most: int) -> NDArray[np.int64]:
    """Divide ``clusters`` into as few shares of at most ``most`` as possible, of nearly equal size."""
    count = math.ceil(clusters / most)
    return np.full(count, clusters // count) + (np.arange(count) < clusters % count)


def _best(points: NDArray[np.float32], sums: NDArray[np.float32], size: int, count: int) -> NDArray[np.int64]:
    """Return the ``count`` clusters to which each point [q | d] adds most, q.S_d + d.S_q, the best first.

    ``sums`` ``(k, 2, d)`` are those of the clusters.
    """
    swapped = rounded(sums[:, ::-1].reshape(len(sums), -1) / np.float32(size))
    nearest: NDArray[np.int64] = knn(points, swapped, min(count, len(sums)), inner_product=True)[1]
    return nearest
