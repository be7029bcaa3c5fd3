"""Shorten a path by reversing parts of it (2-opt, Croes 1958)."""

import numpy as np
from numpy.typing import NDArray

from stages.pack.tour.neighbours import Neighbours, cosines

ROUNDS = 5
# Gains below this are float32 noise: taking them could lengthen the path.
LEAST_GAIN = 1e-5


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
        good = gain > LEAST_GAIN
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
