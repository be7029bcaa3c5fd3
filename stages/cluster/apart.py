"""Pairs of one query or of one document, which belong into different clusters: as negatives, they would be masked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Classes = NDArray[np.int32]
"""The classes that points of one place must not share, ``(c, n)``: of each pair's query, and of its document."""


def of_some(classes: Classes | None, points: NDArray[Any]) -> Classes | None:
    """Return the classes of some points."""
    return None if classes is None else classes[:, points]


def first_of_class(places: NDArray[np.int32], classes: Classes) -> NDArray[np.bool_]:
    """Which points ``(n,)`` are, in each of their classes, the first that is in their place."""
    first = np.ones(len(places), dtype=bool)
    for of in classes:
        others = np.ones(len(places), dtype=bool)
        others[np.unique(_joined(places, of), return_index=True)[1]] = False
        first &= ~others
    return first


def shared(
    places: NDArray[Any], classes: Classes, others: NDArray[Any], classes_of_others: Classes
) -> NDArray[np.bool_]:
    """In which ``places`` ``(n, m)`` of n points with ``classes`` ``(c, n)`` any of the ``others`` has their class.

    ``others`` ``(o,)`` are places.
    """
    found = np.zeros(places.shape, dtype=bool)
    for of, of_others in zip(classes, classes_of_others, strict=True):
        found |= np.isin(_joined(places, of[:, None]), _joined(others, of_others))
    return found


def separate(places: NDArray[np.int32], classes: Classes) -> NDArray[np.int32]:
    """Return ``places`` ``(n,)`` after swaps that take points away from others of their classes.

    A point changes places with one that shares no class with those that stay. Where there is no such point, both stay.
    """
    places, count = places.copy(), int(places.max(initial=-1)) + 1
    fit = np.array([np.bincount(of)[of] <= count for of in classes]).all(axis=0)  # others would still share a place
    for point in np.flatnonzero(fit & ~first_of_class(places, classes)):
        barred = np.zeros(count, dtype=bool)
        barred[places[(classes == classes[:, point, None]).any(axis=0)]] = True
        staying = np.flatnonzero(places == places[point])
        staying = staying[staying != point]
        fits = ~barred[places]
        for of in classes:
            fits &= ~np.isin(of, of[staying])
        if fits.any():
            other = int(np.argmax(fits))
            places[point], places[other] = places[other], places[point]
    return places


def join(
    choices: NDArray[np.int64], joining: NDArray[np.int64], places: NDArray[np.int64], classes: Classes
) -> list[int]:
    """Return the place that each of the points ``joining`` ``(n,)`` joins: the first of its ``choices`` ``(n, m)``
    that has no point of its classes, or the first of all. ``places`` ``(k, size)`` are the points that are there."""
    chosen: list[int] = []
    for point, wished in zip(joining, choices.tolist(), strict=True):
        own, joined = classes[:, point, None], np.array(chosen)
        there = {place: [*places[place], *joining[np.flatnonzero(joined == place)]] for place in wished}
        free = (place for place, points in there.items() if not (classes[:, points] == own).any())
        chosen.append(next(free, wished[0]))
    return chosen


def _joined(places: NDArray[Any], classes: NDArray[np.int32]) -> NDArray[np.int64]:
    joined: NDArray[np.int64] = places.astype(np.int64) << 32 | classes
    return joined
