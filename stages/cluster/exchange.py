"""Exchange pairs between neighbouring clusters as long as the objective grows."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.grid import COARSE, rounded
from batchwright.core.neighbours import knn
from stages.cluster.apart import Classes, shared

NEIGHBOURS = 10
ROUNDS = 96
STALL = 8
LEAST_GAIN = 2e-4


def exchange_pairs(
    points: NDArray[np.float32],
    clusters: NDArray[np.int64],
    rng: np.random.Generator,
    classes: Classes | None = None,
) -> NDArray[np.int64]:
    """Exchange points [q | d] so that the sum of S_q.S_d over ``clusters`` ``(k, size)`` grows; it never shrinks.

    No point moves to a cluster that has one of its ``classes`` ``(c, n)``.

    In each of at most ``ROUNDS`` rounds, a cluster meets at most one of its neighbours, which are searched for every
    ``STALL`` rounds. Two clusters meet again only after one of them has changed. Stops once ``STALL`` rounds together
    gain less than the fraction ``LEAST_GAIN``.
    """
    k = len(clusters)
    state = _State(points, clusters, classes)
    changed = np.zeros(k, dtype=np.int64)
    met = np.full((k, k), -1, dtype=np.int64)
    values = [state.value()]
    for number in range(ROUNDS):
        if number % STALL == 0:
            if number and values[-1] - values[-1 - STALL] < LEAST_GAIN * abs(values[-1]):
                break
            edges = _neighbours(state.sums / np.float32(clusters.shape[1]))
        fresh = met[edges[:, 0], edges[:, 1]] < changed[edges].max(axis=1)
        if len(couples := _matching(rng.permutation(edges[fresh]))):
            met[couples[:, 0], couples[:, 1]] = number
            changed[couples[state.meet(couples)]] = number + 1
        values.append(state.value())
    return state.clusters


class _State:
    """Points stored cluster by cluster, so that each cluster's points are contiguous."""

    def __init__(
        self, points: NDArray[np.float32], clusters: NDArray[np.int64], classes: Classes | None = None
    ) -> None:
        self.clusters = clusters.copy()
        self._classes = classes
        self.points = points[clusters]
        self.sums: NDArray[np.float32] = self.points.sum(axis=1)
        self._own = np.einsum("ksd,ksd->ks", *np.split(self.points, 2, axis=2))
        self._products = list(map(_product, self.sums))

    def value(self) -> float:
        """Return the sum of S_q.S_d over all clusters."""
        return sum(self._products)

    def meet(self, couples: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Let the clusters of each couple ``(m, 2)`` exchange members if that increases their S_q.S_d.

        No cluster may be in two couples. Returns which couples exchanged any, ``(m,)``.
        """
        gains, losses = self._gains(couples)
        leaving, coming = np.argsort(-gains, axis=1, kind="stable"), np.argsort(losses, axis=1, kind="stable")
        better = np.take_along_axis(gains, leaving, axis=1) > np.take_along_axis(losses, coming, axis=1)
        counts = np.count_nonzero(better, axis=1)
        exchanged: NDArray[np.bool_] = counts > 0
        for place in np.flatnonzero(exchanged).tolist():
            first, second = couples[place].tolist()
            count = int(counts[place])
            exchanged[place] = self._exchange(first, second, leaving[place, :count], coming[place, :count])
        return exchanged

    def _exchange(self, first: int, second: int, leaving: NDArray[np.int64], coming: NDArray[np.int64]) -> bool:
        """Exchange as many of these members as pays: all, the better half, and so on; return whether any were."""
        before = self._products[first] + self._products[second]
        while len(leaving):
            moved = self.points[second, coming].sum(axis=0) - self.points[first, leaving].sum(axis=0)
            sums = self.sums[first] + moved, self.sums[second] - moved
            products = _product(sums[0]), _product(sums[1])
            if sum(products) > before + 1e-5 * abs(before):
                self.sums[first], self.sums[second] = sums
                self._products[first], self._products[second] = products
                for array in (self.points, self._own, self.clusters):
                    array[first, leaving], array[second, coming] = array[second, coming], array[first, leaving]
                return True
            leaving, coming = leaving[: len(leaving) // 2], coming[: len(coming) // 2]
        return False

    def _gains(self, couples: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return what each member of the first cluster gains by moving to the second, and what each of that one loses.

        Both are ``(m, size)``, and divided by the size. A point's own q.d is in both products with its cluster's sums,
        but leaves the objective only once.
        """
        first, second = couples.T
        size = np.float32(self.clusters.shape[1])
        swapped = np.roll(rounded((self.sums[second] - self.sums[first]) / size), self.sums.shape[1] // 2, axis=1)
        # One couple after the other: a copy of all their points would take longer than their products.
        gains, losses = (
            np.stack([self.points[cluster] @ direction for cluster, direction in zip(side, swapped, strict=True)])
            for side in (first.tolist(), second.tolist())
        )
        own = 2 * self._own / size
        gains, losses = gains + own[first], losses - own[second]
        if self._classes is not None:
            here, there = self.clusters[first], self.clusters[second]
            gains[_shared(self._classes, here, there)] = -np.inf
            losses[_shared(self._classes, there, here)] = np.inf
        return gains, losses


def _shared(classes: Classes, members: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which members of clusters ``(m, size)`` share a class with any of the same row of ``others`` ``(m, size)``."""
    couples = np.repeat(np.arange(len(members)), members.shape[1])
    found = shared(couples[:, None], classes[:, members.ravel()], couples, classes[:, others.ravel()])
    return found.reshape(members.shape)


def _product(sums: NDArray[np.float32]) -> float:
    """Return S_q.S_d, given [S_q | S_d]."""
    queries, documents = np.split(sums.astype(np.float64), 2)
    return float(queries @ documents)


def _neighbours(means: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return couples ``(e, 2)`` of clusters whose means of q + d are near each other, the lower number first."""
    queries, documents = np.split(means, 2, axis=1)
    points = rounded(queries + documents, COARSE)
    found = knn(points, points, min(NEIGHBOURS + 1, len(points)))[1]
    couples = np.stack([np.repeat(np.arange(len(points)), found.shape[1]), found.ravel()], axis=1)
    couples.sort(axis=1)
    return np.unique(couples[couples[:, 0] < couples[:, 1]], axis=0)


def _matching(couples: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pick couples greedily, in their order, so that each cluster is in at most one."""
    taken: set[int] = set()
    chosen = []
    for place, couple in enumerate(zip(*couples.T.tolist(), strict=True)):
        if taken.isdisjoint(couple):
            taken.update(couple)
            chosen.append(place)
    return couples[chosen]
