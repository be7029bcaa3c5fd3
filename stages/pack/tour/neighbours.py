"""The nearest of many points: exact among few, searched in cells among many."""

from typing import NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

NEAREST = 8
EXACT_UP_TO = 8192
CELL_POINTS = 1024
CELLS_SEARCHED = 64
# Similarities from codes of two bits a dimension only say which few are worth the true ones.
CANDIDATES = 32
# A cell.
TRAINING_POINTS = 64
TRAINING_ROUNDS = 4
_SEARCHED_TOGETHER = 16384
# Few enough that both sides stay in cache.
_COMPARED_TOGETHER = 2048


class Neighbours(NamedTuple):
    """Row numbers ``(N, k)``, in no set order, and their similarities; -1 and -inf stand for none."""

    points: NDArray[np.int64]
    similarities: NDArray[np.float32]


def nearest(unit: NDArray[np.float32]) -> Neighbours:
    """The ``NEAREST`` or so other points most similar to each of ``unit`` ``(N, d)``.

    Up to ``EXACT_UP_TO`` points all are compared. Of more, each is compared with those in the
    ``CELLS_SEARCHED`` cells nearest to it, so that the cost a point stays the same.
    """
    if len(unit) <= EXACT_UP_TO:
        similarities, points = faiss.knn(unit, unit, min(NEAREST + 1, len(unit)), metric=faiss.METRIC_INNER_PRODUCT)
        itself = points == np.arange(len(unit))[:, None]
        points[itself], similarities[itself] = -1, -np.inf
        return Neighbours(points, similarities)
    # A code has one part for two dimensions.
    even = np.pad(unit, ((0, 0), (0, 1))) if unit.shape[1] % 2 else unit
    index = _index(even)
    starts = tqdm(
        range(0, len(even), _SEARCHED_TOGETHER), desc="tour", unit="block", mininterval=2, delay=2, leave=False
    )
    blocks = [_search(index, even, np.arange(start, min(start + _SEARCHED_TOGETHER, len(even)))) for start in starts]
    return Neighbours(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def cosines(unit: NDArray[np.float32], one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float32]:
    """Similarities ``(n,)`` of the points ``one`` and ``other`` ``(n,)``."""
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
    # One code book for all parts: as good here, and one training instead of hundreds of tiny ones.
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
