"""Cells: parts of a domain that are clustered one at a time, which bounds memory and makes the cost linear."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.core.neighbours import knn, processes
from batchwright.core.spill import spilled
from batchwright.formats.vectors import PairVectors, blocks
from stages.cluster.methods.balance.fill import Nearest, fill
from stages.cluster.methods.lloyd import sample, sum_points, train
from stages.cluster.params import ClusterParams
from stages.cluster.side_sums import assign, side_sums

MOST_CLUSTERS = 512
CANDIDATES = 8
ITERATIONS = 10
POINTS_PER_CELL = 256


def most_clusters(params: ClusterParams) -> int:
    """Clusters of a cell, or of a group of clusters."""
    return max(1, min(MOST_CLUSTERS, params.resident_pairs // params.cluster_size))


def at_once(params: ClusterParams) -> int:
    """How many cells are done at a time: one a process, as far as they may be in memory."""
    in_memory = max(1, params.resident_pairs // (most_clusters(params) * params.cluster_size))
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
    centroids = train(sum_points(vectors, pairs[drawn]), len(capacities), iterations=ITERATIONS, seed=seed)
    placed = fill(_nearest(lambda some: sum_points(vectors, pairs[some]), centroids, do_parts), len(pairs), capacities)
    return [pairs[placed == cell] for cell in range(len(capacities))]


def regroup(
    vectors: PairVectors, members: NDArray[np.int64], most: int, rng: np.random.Generator, do_parts: Map
) -> list[NDArray[np.int64]]:
    """Group neighbouring clusters ``members`` ``(k, size)``, at most ``most`` per group, differently on each call."""
    capacities = _shares(len(members), most)
    sums = side_sums(vectors, assign(members, len(vectors)), len(members), do_parts)
    centroids = np.sum(sums, axis=1, out=spilled((len(members), vectors.width), np.float32))
    centroids /= members.shape[1]
    targets = train(centroids, len(capacities), iterations=ITERATIONS, seed=int(rng.integers(2**31)))
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

        every = list(blocks(len(waiting)))
        for block, (distances, found) in zip(every, do_parts(compare, every), strict=True):
            scores[block], best[block] = -distances, found
        return scores, best

    return nearest


def _shares(clusters: int, most: int) -> NDArray[np.int64]:
    """Divide ``clusters`` into as few shares of at most ``most`` as possible, of nearly equal size."""
    count = math.ceil(clusters / most)
    return np.full(count, clusters // count) + (np.arange(count) < clusters % count)
