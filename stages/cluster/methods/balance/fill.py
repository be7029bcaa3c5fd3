"""Assign points to places: every point gets one place, every place a fixed number of points."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.spill import slices

Nearest = Callable[[NDArray[np.int32], NDArray[np.int64]], tuple[NDArray[np.float32], NDArray[Any]]]
"""Takes the numbers of n points and of places. Returns each point's m best places, best first: their scores ``(n, m)``
and their indices ``(n, m)`` into the given places."""


def fill(nearest: Nearest, points: int, capacities: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the place of each point, ``(points,)``, by deferred acceptance (Gale and Shapley, 1962).

    Each point proposes to its best place. A full place keeps its best points and rejects the others, which propose to
    their next choice. ``capacities`` must sum to ``points``.
    """
    placed = np.full(points, -1, dtype=np.int32)
    waiting = np.arange(points, dtype=np.int32)
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


def _accept(scores: NDArray[np.float32], best: NDArray[Any], capacities: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the place of each point, or -1 if every place that it proposed to is full of better points."""
    points, choices = best.shape
    choice = np.zeros(points, dtype=np.int32)
    at = np.full(points, -1, dtype=np.int32)
    score = np.zeros(points, dtype=np.float32)
    free = np.arange(points, dtype=np.int32)
    while len(free):
        for block in slices(len(free)):
            some = free[block]
            at[some], score[some] = best[some, choice[some]], scores[some, choice[some]]
        asked = np.zeros(len(capacities) + 1, dtype=bool)  # the last place, -1, stands for none
        asked[at[free]] = True
        free = _rejected(at, score, capacities, asked)
        at[free] = -1
        choice[free] += 1
        free = free[choice[free] < choices]
    return at


def _rejected(
    at: NDArray[np.int32], score: NDArray[np.float32], capacities: NDArray[np.int64], asked: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Return the points for which there is no room in the places that were ``asked``."""
    there = np.flatnonzero(asked[at]).astype(np.int32)
    there = there[np.lexsort((-score[there], at[there]))]
    ends = np.cumsum(np.bincount(at[there], minlength=len(capacities)))
    starts = np.append(0, ends[:-1]) + capacities
    full = np.flatnonzero(starts < ends)
    return np.concatenate([there[:0], *(there[starts[place] : ends[place]] for place in full)])
