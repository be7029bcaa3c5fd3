"""Build a path from short edges: every point starts as a fragment, and fragments are joined at their ends."""

from array import array

import numpy as np
from numpy.typing import NDArray

from stages.pack.tour.neighbours import Neighbours, cosines, nearest

# A round that joins a smaller share of the fragments than this has met a clump of (near-)equal points.
STUCK = 0.05
_BLOCK = 65536


def joined_path(unit: NDArray[np.float32], start: int, neighbours: Neighbours) -> NDArray[np.int64]:
    """Return a path ``(N,)`` from ``start`` over the points ``unit`` ``(N, d)``, given their ``neighbours``.

    Each round joins ends of fragments to the nearest ends of other fragments, most similar first.
    """
    fragments = _Fragments(len(unit), start)
    ends = np.arange(len(unit))
    while fragments.count > 1:
        before = fragments.count
        fragments.join(*_edges(ends, neighbours))
        if before - fragments.count < STUCK * before:
            # All points of a clump share the same few neighbours; on a line, each has its own.
            fragments.join(*_edges_along_a_line(fragments, unit))
        ends = fragments.ends()
        if fragments.count > 1:
            neighbours = nearest(unit[ends])
    return fragments.path()


class _Fragments:
    """Paths that together cover all points; ``start`` always remains an end of one of them."""

    def __init__(self, points: int, start: int) -> None:
        self.count = points
        self._start = start
        # Writing single elements is fast in Python arrays; reading all of them is fast in NumPy views of the arrays.
        self._degree = bytearray(points + 1)
        self._far = array("q", range(points + 1))
        # The sum of a point's neighbours on its path: subtracting the one we come from leaves the other.
        self._neighbours = array("q", bytes(8 * points))
        # A virtual end, numbered ``points``, precedes the start.
        self._degree[start], self._far[start], self._far[points] = 1, points, start

    def ends(self) -> NDArray[np.int64]:
        """Return the points that can still be joined to another."""
        return np.flatnonzero(np.frombuffer(self._degree, np.uint8)[:-1] < 2)

    def open(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which edges connect ends of two different fragments."""
        degree, far = np.frombuffer(self._degree, np.uint8), np.frombuffer(self._far, np.int64)
        possible: NDArray[np.bool_] = (degree[one] < 2) & (degree[other] < 2) & (far[one] != other)
        return possible

    def join(self, one: NDArray[np.int64], other: NDArray[np.int64], similarities: NDArray[np.float32]) -> None:
        """Add edges, most similar first, skipping those that are no longer open."""
        order = np.argsort(-similarities, kind="stable")
        for block in range(0, len(order), _BLOCK):
            edges = order[block : block + _BLOCK]
            edges = edges[self.open(one[edges], other[edges])]
            for a, b in zip(one[edges].tolist(), other[edges].tolist(), strict=True):
                if self._degree[a] < 2 and self._degree[b] < 2 and self._far[a] != b:
                    self._join(a, b)

    def path(self) -> NDArray[np.int64]:
        """Return the only remaining fragment, from the start."""
        order = array("q", [self._start]) * len(self._neighbours)
        last, here = 0, self._start
        for position in range(1, len(order)):
            last, here = here, self._neighbours[here] - last
            order[position] = here
        return np.frombuffer(order, np.int64)

    def _join(self, a: int, b: int) -> None:
        far_a, far_b = self._far[a], self._far[b]
        self._far[far_a], self._far[far_b] = far_b, far_a
        self._degree[a] += 1
        self._degree[b] += 1
        self._neighbours[a] += b
        self._neighbours[b] += a
        self.count -= 1


_Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]


def _edges(ends: NDArray[np.int64], neighbours: Neighbours) -> _Edges:
    one, rank = np.nonzero(neighbours.points >= 0)
    return ends[one], ends[neighbours.points[one, rank]], neighbours.similarities[one, rank]


def _edges_along_a_line(fragments: _Fragments, unit: NDArray[np.float32]) -> _Edges:
    """Project the ends onto a random line; return the more similar half of the edges between neighbours there."""
    ends = fragments.ends()
    line = ends[np.argsort(unit[ends] @ np.random.default_rng(0).normal(size=unit.shape[1]), kind="stable")]
    one, other = line[:-1], line[1:]
    possible = fragments.open(one, other)
    one, other = one[possible], other[possible]
    similarities = cosines(unit, one, other)
    half = np.argsort(-similarities, kind="stable")[: (len(one) + 1) // 2]
    return one[half], other[half], similarities[half]
