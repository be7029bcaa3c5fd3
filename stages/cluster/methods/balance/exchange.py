"""Exchange pairs between neighbouring clusters as long as the objective grows."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.neighbours import knn

NEIGHBOURS = 10
ROUNDS = 96
STALL = 8
LEAST_GAIN = 2e-4


def exchange_pairs(
    points: NDArray[np.float32], clusters: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Exchange points [q | d] so that the sum of S_q.S_d over ``clusters`` ``(k, size)`` grows; it never shrinks.

    In each of at most ``ROUNDS`` rounds, a cluster meets at most one of its neighbours, which are searched for every
    ``STALL`` rounds. Two clusters meet again only after one of them has changed. Stops once ``STALL`` rounds together
    gain less than the fraction ``LEAST_GAIN``.
    """
    k = len(clusters)
    state = _State(points, clusters)
    changed = np.zeros(k, dtype=np.int64)
    met = np.full((k, k), -1, dtype=np.int64)
    values = [state.value()]
    for number in range(ROUNDS):
        if number % STALL == 0:
            if number and values[-1] - values[-1 - STALL] < LEAST_GAIN * abs(values[-1]):
                break
            edges = _neighbours(state.sums)
        fresh = met[edges[:, 0], edges[:, 1]] < changed[edges].max(axis=1)
        for first, second in _matching(rng.permutation(edges[fresh]), k):
            met[first, second] = number
            if state.meet(first, second):
                changed[[first, second]] = number + 1
        values.append(state.value())
    return state.clusters


class _State:
    """Points stored cluster by cluster, so that each cluster's points are contiguous."""

    def __init__(self, points: NDArray[np.float32], clusters: NDArray[np.int64]) -> None:
        self.clusters = clusters.copy()
        self.points = points[clusters]
        self.sums: NDArray[np.float32] = self.points.sum(axis=1)
        self._own = np.einsum("ksd,ksd->ks", *np.split(self.points, 2, axis=2))

    def value(self) -> float:
        """Return the sum of S_q.S_d over all clusters."""
        return sum(map(_product, self.sums))

    def meet(self, first: int, second: int) -> bool:
        """Exchange members of two clusters if that increases their S_q.S_d; return whether any were exchanged."""
        gains, losses = self._gains(first, second)
        leaving, coming = np.argsort(-gains, kind="stable"), np.argsort(losses, kind="stable")
        count = int(np.count_nonzero(gains[leaving] > losses[coming]))
        before = _product(self.sums[first]) + _product(self.sums[second])
        while count:
            out, back = leaving[:count], coming[:count]
            moved = self.points[second, back].sum(axis=0) - self.points[first, out].sum(axis=0)
            sums = self.sums[first] + moved, self.sums[second] - moved
            if _product(sums[0]) + _product(sums[1]) > before + 1e-5 * abs(before):
                self.sums[first], self.sums[second] = sums
                for array in (self.points, self._own, self.clusters):
                    array[first, out], array[second, back] = array[second, back], array[first, out]
                return True
            count //= 2
        return False

    def _gains(self, first: int, second: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the gain of each member of ``first`` by moving to ``second``, and the loss of each of ``second``.

        A point's own q.d is in both products with its cluster's sums, but leaves the objective only once.
        """
        difference = self.sums[second] - self.sums[first]
        swapped = np.roll(difference, len(difference) // 2)
        gains = self.points[first] @ swapped + 2 * self._own[first]
        losses = self.points[second] @ swapped - 2 * self._own[second]
        return gains, losses


def _product(sums: NDArray[np.float32]) -> float:
    """Return S_q.S_d, given [S_q | S_d]."""
    half = len(sums) // 2
    return float(sums[:half] @ sums[half:])


def _neighbours(sums: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return couples ``(e, 2)`` of clusters whose sums of q + d are near each other, the lower number first."""
    queries, documents = np.split(sums, 2, axis=1)
    points = queries + documents
    found = knn(points, points, min(NEIGHBOURS + 1, len(points)))[1]
    couples = np.stack([np.repeat(np.arange(len(points)), found.shape[1]), found.ravel()], axis=1)
    couples.sort(axis=1)
    return np.unique(couples[couples[:, 0] < couples[:, 1]], axis=0)


def _matching(couples: NDArray[np.int64], clusters: int) -> list[tuple[int, int]]:
    """Pick couples greedily, in their order, so that each cluster is in at most one."""
    taken = np.zeros(clusters, dtype=bool)
    chosen = []
    for first, second in couples.tolist():
        if not taken[first] and not taken[second]:
            taken[first] = taken[second] = True
            chosen.append((first, second))
    return chosen
