"""Assign points to places: every point gets one place, every place a fixed number of points."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Nearest = Callable[[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.float32], NDArray[np.int64]]]
"""Takes the numbers of n points and of places. Returns each point's m best places, best first: their scores ``(n, m)``
and their indices ``(n, m)`` into the given places."""


def fill(nearest: Nearest, points: int, capacities: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each point, ``(points,)``, by deferred acceptance (Gale and Shapley, 1962).

    Each point proposes to its best place. A full place keeps its best points and rejects the others, which propose to
    their next choice. ``capacities`` must sum to ``points``.
    """
    placed = np.full(points, -1, dtype=np.int64)
    waiting = np.arange(points)
    room = capacities.copy()
    while len(waiting):
        places = np.flatnonzero(room)
        scores, best = nearest(waiting, places)
        found = _accept(scores, best, room[places])
        taken = found >= 0
        placed[waiting[taken]] = places[found[taken]]
        room -= np.bincount(placed[waiting[taken]], minlength=len(room))
        waiting = waiting[~taken]
    return placed


def _accept(scores: NDArray[np.float32], best: NDArray[np.int64], capacities: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each point, or -1 if every place that it proposed to is full of better points."""
    points, choices = best.shape
    choice = np.zeros(points, dtype=np.int64)
    at = np.full(points, -1, dtype=np.int64)
    score = np.zeros(points, dtype=np.float32)
    free = np.arange(points)
    while len(free):
        at[free], score[free] = best[free, choice[free]], scores[free, choice[free]]
        free = _rejected(at, score, capacities, np.unique(at[free]))
        at[free] = -1
        choice[free] += 1
        free = free[choice[free] < choices]
    return at


def _rejected(
    at: NDArray[np.int64], score: NDArray[np.float32], capacities: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the points for which there is no room in ``places``."""
    asked = np.zeros(len(capacities) + 1, dtype=bool)
    asked[places] = True
    there = np.flatnonzero(asked[at])
    order = there[np.lexsort((-score[there], at[there]))]
    place, first, count = np.unique(at[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(first, count)
    return order[rank >= np.repeat(capacities[place], count)]
