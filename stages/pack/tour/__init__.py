"""A short tour over cluster centroids, on which neighbours are similar."""

import faiss
import numpy as np
from numpy.typing import NDArray

from stages.pack.tour.fragments import joined_path
from stages.pack.tour.greedy import greedy_tour
from stages.pack.tour.neighbours import cosines, nearest
from stages.pack.tour.turns import two_opt

GREEDY_UP_TO = 2048


def short_tour(centroids: NDArray[np.float32], start: int) -> NDArray[np.int64]:
    """Return a short path ``(K,)`` from ``start`` over the centroids ``(K, d)``, at a cost near-linear in K.

    The length of a path is the sum of 1 - cosine between neighbours, because hardness, a mean of cosines, is linear in
    it. The path is built greedily from the shortest edges (Bentley 1992) and improved by 2-opt.

    Up to ``GREEDY_UP_TO`` centroids, the greedy tour is improved as well and the shorter path is returned, so the
    result is never longer than the greedy tour. Beyond that, it has only been measured to be shorter.
    """
    unit = np.array(centroids, dtype=np.float32, order="C")
    if len(unit) < 2:
        return np.arange(len(unit))
    faiss.normalize_L2(unit)
    neighbours = nearest(unit)
    paths = [joined_path(unit, start, neighbours)]
    if len(unit) <= GREEDY_UP_TO:
        paths.append(greedy_tour(unit, start))
    return min((two_opt(unit, path, neighbours) for path in paths), key=lambda path: tour_length(unit, path))


def tour_length(unit: NDArray[np.float32], order: NDArray[np.int64]) -> float:
    """Return the sum of 1 - cosine between neighbours on a path ``(K,)`` over ``unit`` vectors ``(K, d)``."""
    return len(order) - 1 - float(cosines(unit, order[:-1], order[1:]).sum(dtype=np.float64))
