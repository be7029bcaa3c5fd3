"""Nearest neighbours of points: exact for few points, searched in cells for many."""

from typing import NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.core.bar import bar
from batchwright.core.neighbours import knn

NEAREST = 8
EXACT_UP_TO = 8192
CELL_POINTS = 1024
CELLS_SEARCHED = 64
# Codes of two bits per dimension only preselect candidates; their exact similarities are computed afterwards.
CANDIDATES = 32
# Per cell.
TRAINING_POINTS = 64
TRAINING_ROUNDS = 4
_SEARCHED_TOGETHER = 16384
# Small enough that both sides stay in cache.
_COMPARED_TOGETHER = 2048


class Neighbours(NamedTuple):
    """Row numbers ``(N, k)``, in no particular order, and their similarities, padded with -1 and -inf."""

    points: NDArray[np.int64]
    similarities: NDArray[np.float32]


def nearest(unit: NDArray[np.float32]) -> Neighbours:
    """Return about ``NEAREST`` other points that are most similar to each of ``unit`` ``(N, d)``.

    Up to ``EXACT_UP_TO`` points, all are compared with each other. Beyond that, each is compared with the points in the
    ``CELLS_SEARCHED`` cells nearest to it, so that the cost per point stays constant.
    """
    if len(unit) <= EXACT_UP_TO:
        similarities, points = knn(unit, unit, min(NEAREST + 1, len(unit)), inner_product=True)
        itself = points == np.arange(len(unit))[:, None]
        points[itself], similarities[itself] = -1, -np.inf
        return Neighbours(points, similarities)
    # Each part of a code covers two dimensions.
    even = np.pad(unit, ((0, 0), (0, 1))) if unit.shape[1] % 2 else unit
    index = _index(even)
    starts = bar(range(0, len(even), _SEARCHED_TOGETHER), desc="tour", unit="block")
    blocks = [_search(index, even, np.arange(start, min(start + _SEARCHED_TOGETHER, len(even)))) for start in starts]
    return Neighbours(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def cosines(unit: NDArray[np.float32], one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the similarities ``(n,)`` of the points ``one[i]`` and ``other[i]``."""
    found = np.empty(len(one), dtype=np.float32)
    for start in range(0, len(one), _COMPARED_TOGETHER):
        block = slice(start, start + _COMPARED_TOGETHER)
        found[block] = np.einsum("nd,nd->n", unit[one[block]], unit[other[block]])
    return found


def _index(unit: NDArray[np.float32]) -> faiss.IndexIVFPQFastScan:
    count, width = unit.shape
    cells = count // CELL_POINTS
    index = faiss.IndexIVFPQFastScan(faiss.IndexFlatIP(width), width, cells, width // 2, 4, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = CELLS_SEARCHED
    index.cp.niter = TRAINING_ROUNDS
    index.cp.min_points_per_centroid = 1
    # One codebook shared by all parts is as good here, and takes one training instead of hundreds of tiny ones.
    index.pq.train_type = faiss.ProductQuantizer.Train_shared
    index.train(np.random.default_rng(0).choice(unit, cells * TRAINING_POINTS, replace=False, shuffle=False))
    index.add(unit)
    return index


def _search(index: faiss.IndexIVFPQFastScan, unit: NDArray[np.float32], queries: NDArray[np.int64]) -> Neighbours:
    points = index.search(unit[queries], CANDIDATES)[1]
    points[points == queries[:, None]] = -1
    similarities = cosines(unit, queries.repeat(CANDIDATES), points.ravel()).reshape(points.shape)
    similarities[points < 0] = -np.inf
    best = np.argpartition(similarities, -NEAREST, axis=1)[:, -NEAREST:]
    return Neighbours(np.take_along_axis(points, best, axis=1), np.take_along_axis(similarities, best, axis=1))
