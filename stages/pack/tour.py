"""A short tour over cluster centroids, on which neighbours are similar.

A path is built from the shortest edges: every centroid starts as a fragment, and fragments are joined at their ends
(``joined_path``). Reversing parts of it then makes it shorter (``two_opt``).
"""

from array import array
from typing import NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.core import grid
from batchwright.core.neighbours import kmeans, knn
from batchwright.core.terminal import bar

GREEDY_UP_TO = 2048
"""Centroids up to which the greedy tour is improved as well."""
NEAREST = 8
"""Neighbours of a point that may follow it."""
EXACT_UP_TO = 8192
"""Points up to which all are compared with each other."""
CELL_POINTS, CELLS_SEARCHED = 1024, 8
"""Beyond that: points of a cell, and cells that are searched for the neighbours of a point."""
TRAINING_POINTS, TRAINING_ROUNDS = 64, 4
"""Per cell."""
STUCK = 0.05
"""A round that joins a smaller share of the fragments than this has met a clump of (near-)equal points."""
ROUNDS = 5
"""Of reversals, at most."""
_BLOCK, _SEARCHED_TOGETHER = 65536, 16384
_COMPARED_TOGETHER = 2048
"""Small enough that both sides stay in cache."""


class Neighbours(NamedTuple):
    """Row numbers ``(N, k)``, in no particular order, and their similarities, padded with -1 and -inf."""

    points: NDArray[np.int64]
    similarities: NDArray[np.float32]


_Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]


def short_tour(centroids: NDArray[np.float32], start: int) -> NDArray[np.int64]:
    """Return a short path ``(K,)`` from ``start`` over the centroids ``(K, d)``, at a cost near-linear in K.

    The length of a path is the sum of 1 - cosine between neighbours, because hardness, a mean of cosines, is linear in
    it. The path is built greedily from the shortest edges (Bentley 1992) and improved by 2-opt.

    Up to ``GREEDY_UP_TO`` centroids, the greedy tour is improved as well and the shorter path is returned, so the
    result is never longer than the greedy tour. Beyond that, it has only been measured to be shorter.
    """
    if len(centroids) < 2:
        return np.arange(len(centroids))
    unit = grid.unit(centroids)
    neighbours = nearest(unit)
    paths = [joined_path(unit, start, neighbours)]
    if len(unit) <= GREEDY_UP_TO:
        paths.append(greedy_tour(unit, start))
    return min((two_opt(unit, path, neighbours) for path in paths), key=lambda path: tour_length(unit, path))


def tour_length(unit: NDArray[np.float32], order: NDArray[np.int64]) -> float:
    """Return the sum of 1 - cosine between neighbours on a path ``(K,)`` over ``unit`` vectors ``(K, d)``."""
    return len(order) - 1 - float(cosines(unit, order[:-1], order[1:]).sum(dtype=np.float64))


def greedy_tour(unit: NDArray[np.float32], start: int) -> NDArray[np.int64]:
    """Return the path ``(K,)`` from ``start`` that always goes to the unvisited centroid of the highest cosine.

    ``unit`` is ``(K, d)``. The cost is O(K^2 d).
    """
    remaining, names = unit.copy(), np.arange(len(unit))
    order = np.empty(len(unit), dtype=np.int64)
    position = start
    for left in range(len(unit), 0, -1):
        here = remaining[position].copy()
        order[len(unit) - left] = names[position]
        # Move the last centroid to the visited one's place, so that the remaining ones stay contiguous.
        remaining[position], names[position] = remaining[left - 1], names[left - 1]
        if left > 1:
            position = int(np.argmax(remaining[: left - 1] @ here))
    return order


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


def _edges(ends: NDArray[np.int64], neighbours: Neighbours) -> _Edges:
    one, rank = np.nonzero(neighbours.points >= 0)
    return ends[one], ends[neighbours.points[one, rank]], neighbours.similarities[one, rank]


def _edges_along_a_line(fragments: _Fragments, unit: NDArray[np.float32]) -> _Edges:
    """Project the ends onto a random line; return the more similar half of the edges between neighbours there."""
    ends = fragments.ends()
    direction = np.random.default_rng(0).integers(-1000, 1000, unit.shape[1]).astype(np.float64)
    line = ends[np.argsort(unit[ends] @ direction, kind="stable")]
    one, other = line[:-1], line[1:]
    possible = fragments.open(one, other)
    one, other = one[possible], other[possible]
    similarities = cosines(unit, one, other)
    half = np.argsort(-similarities, kind="stable")[: (len(one) + 1) // 2]
    return one[half], other[half], similarities[half]


def two_opt(unit: NDArray[np.float32], order: NDArray[np.int64], neighbours: Neighbours) -> NDArray[np.int64]:
    """Shorten the path ``order`` ``(N,)`` with edges to ``neighbours``; it keeps its start and never grows longer.

    Each round finds all reversals that shorten the current path and applies them, best first, unless an earlier one has
    changed their edges. A reversal costs as much as the part is long, but few parts are long.
    """
    path = order.copy()
    position = np.empty_like(path)
    position[path] = np.arange(len(path))
    for _ in range(ROUNDS):
        turns = _gaining(unit, path, position, neighbours)
        if not sum(_turn(path, position, *edges) for edges in turns.tolist()):
            break
    return path


def _gaining(
    unit: NDArray[np.float32], path: NDArray[np.int64], position: NDArray[np.int64], neighbours: Neighbours
) -> NDArray[np.int64]:
    """Return edges ``(n, 4)`` a-b and c-d, in path order, that are worth replacing by a-c and b-d; best first.

    Edge e leads to position e. The first edge comes from nowhere and the last leads nowhere; they are never replaced.
    """
    nowhere = np.full(1, np.inf, dtype=np.float32)
    of_edge = np.concatenate([nowhere, cosines(unit, path[:-1], path[1:]), nowhere])
    bounded = np.append(path, path[-1])
    found = []
    for side in (0, 1):  # The neighbours that become adjacent are b and d, or a and c.
        edge = position + side
        point, rank = np.nonzero(neighbours.similarities > of_edge[edge][:, None])
        one, other = edge[point], edge[neighbours.points[point, rank]]
        adjacent = neighbours.similarities[point, rank]
        gain = adjacent + cosines(unit, bounded[one - 1 + side], bounded[other - 1 + side])
        gain -= of_edge[one] + of_edge[other]
        good = gain > 0
        found.append((gain[good], np.minimum(one, other)[good], np.maximum(one, other)[good]))
    gain, first, second = (np.concatenate(parts) for parts in zip(*found, strict=True))
    edges = np.stack([path[first - 1], path[first], path[second - 1], path[second]], axis=1)
    return edges[np.argsort(-gain, kind="stable")]


def _turn(path: NDArray[np.int64], position: NDArray[np.int64], a: int, b: int, c: int, d: int) -> bool:
    """Reverse the part from b to c if a-b and c-d are still edges in the same direction; return whether it was done."""
    step = position[b] - position[a]
    if abs(step) != 1 or position[d] - position[c] != step:
        return False
    part = slice(position[b], position[c] + 1) if step == 1 else slice(position[c], position[b] + 1)
    path[part] = path[part][::-1].copy()
    position[path[part]] = np.arange(part.start, part.stop)
    return True


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
    index = _index(unit)
    starts = bar(range(0, len(unit), _SEARCHED_TOGETHER), desc="tour", unit="block")
    blocks = [_search(index, unit, np.arange(start, min(start + _SEARCHED_TOGETHER, len(unit)))) for start in starts]
    return Neighbours(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _index(unit: NDArray[np.float32]) -> faiss.IndexIVFFlat:
    count, width = unit.shape
    cells = count // CELL_POINTS
    drawn = np.random.default_rng(0).choice(unit, cells * TRAINING_POINTS, replace=False, shuffle=False)
    quantizer = faiss.IndexFlatIP(width)
    quantizer.add(grid.unit(kmeans(grid.rounded(drawn, grid.COARSE), cells, iterations=TRAINING_ROUNDS, seed=0)))
    index = faiss.IndexIVFFlat(quantizer, width, cells, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = CELLS_SEARCHED
    index.add(unit)
    return index


def _search(index: faiss.IndexIVFFlat, unit: NDArray[np.float32], queries: NDArray[np.int64]) -> Neighbours:
    similarities, points = index.search(unit[queries], NEAREST + 1)
    itself = points == queries[:, None]
    points[itself], similarities[itself] = -1, -np.inf
    return Neighbours(points, similarities)


def cosines(unit: NDArray[np.float32], one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the similarities ``(n,)`` of the points ``one[i]`` and ``other[i]``."""
    found = np.empty(len(one), dtype=np.float32)
    for start in range(0, len(one), _COMPARED_TOGETHER):
        block = slice(start, start + _COMPARED_TOGETHER)
        found[block] = np.einsum("nd,nd->n", unit[one[block]], unit[other[block]])
    return found
