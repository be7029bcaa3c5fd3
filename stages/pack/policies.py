"""Packing policies: which pairs of a domain meet in a batch. To add one, write it here and name it in ``POLICIES``."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from formats.clusters import Clusters
from stages.pack.tour import greedy_tour

Policy = Callable[[Clusters, int, np.random.Generator], NDArray[np.int64]]


def contextual(clusters: Clusters, batch_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Batches ``(n, batch_size)`` of row numbers, each from one cluster or from neighbouring ones.

    A cluster's pairs, shuffled, fill as many batches as they can; the remainders, in the order of a greedy
    tour over the centroids, fill the others. (Contextual Document Embeddings, section 4.1, chops the
    concatenated clusters instead, so that most batches straddle two.)
    """
    by_cluster = _members(clusters, rng)
    tour = greedy_tour(clusters.centroids.sum(axis=1), int(rng.integers(len(by_cluster))))
    full = [rows[: len(rows) // batch_size * batch_size] for rows in by_cluster]
    remainders = [by_cluster[cluster][len(full[cluster]) :] for cluster in tour]
    return _chop(np.concatenate([*full, *remainders]), batch_size)


def random(clusters: Clusters, batch_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Batches ``(n, batch_size)`` of row numbers drawn from the whole domain: the control."""
    return _chop(rng.permutation(len(clusters.assignment)), batch_size)


POLICIES: dict[str, Policy] = {"contextual": contextual, "random": random}


def _members(clusters: Clusters, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    shuffled = rng.permutation(len(clusters.assignment))
    by_cluster = shuffled[np.argsort(clusters.assignment[shuffled], kind="stable")]
    return np.split(by_cluster, np.cumsum(clusters.sizes)[:-1])


def _chop(rows: NDArray[np.int64], batch_size: int) -> NDArray[np.int64]:
    batches = len(rows) // batch_size
    return rows[: batches * batch_size].reshape(batches, batch_size)
