"""A short tour through cluster centroids, so that neighbours on it are similar."""

import faiss
import numpy as np
from numpy.typing import NDArray

from stages.pack.tour.fragments import joined_path
from stages.pack.tour.greedy import greedy_tour
from stages.pack.tour.neighbours import cosines, nearest
from stages.pack.tour.turns import two_opt

GREEDY_UP_TO = 2048


def short_tour(centroids: NDArray[np.float32], start: int) -> NDArray[np.int64]:
    """Order ``(K,)`` of the centroids ``(K, d)`` from ``start``; cost near-linear in K.

    Short is a small sum of 1 - cosine between neighbours on the path: hardness, a mean of cosines, is
    linear in it. The shortest edges that make one path are taken greedily (Bentley 1992), and the path
    is improved by 2-opt. Up to ``GREEDY_UP_TO`` centroids the greedy tour is improved, too, and the
    shorter one taken: never longer than the greedy tour by construction; beyond, by measurement
    (``benchmarks/tour.py``).
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
    """Sum of 1 - cosine between neighbours on a path ``(K,)`` over ``unit`` vectors ``(K, d)``."""
    return len(order) - 1 - float(cosines(unit, order[:-1], order[1:]).sum(dtype=np.float64))
