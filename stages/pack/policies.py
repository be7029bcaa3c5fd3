"""Packing policies: which pairs of a domain share a batch. To add one, list it in ``POLICIES`` and in dvc.yaml."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.clusters import Clusters
from stages.pack.tour import short_tour

Policy = Callable[[Clusters, int, float, np.random.Generator], NDArray[np.int64]]
"""Takes a domain's clusters, the batch size, the share of a batch that comes from one cluster, and a generator.
Returns row numbers in the order in which they are cut into batches; rows that do not fill a batch come last."""


def contextual(clusters: Clusters, batch_size: int, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Order pairs in groups of ``share * batch_size``, each from one cluster or from neighbouring clusters.

    A cluster's shuffled pairs fill as many groups as they can. The remainders of all clusters, in the order of a tour
    over the centroids, fill the other groups. A batch consists of random groups: a share of 1 makes the hardest
    batches, a share of 0 random ones.

    Contextual Document Embeddings (section 4.1) instead concatenates the clusters and cuts them into batches, so that
    most batches straddle two clusters.
    """
    group = max(1, round(share * batch_size))
    if group == 1:
        return random(clusters, batch_size, share, rng)
    by_cluster = _members(clusters, rng)
    groups = [rows[end - group : end] for rows in by_cluster for end in range(group, len(rows) + 1, group)]
    rest = _remainders(clusters, by_cluster, group, rng)
    groups += np.split(rest, range(group, len(rest), group))
    if group == batch_size:
        return np.concatenate(groups)
    short = groups.pop() if len(groups[-1]) < group else rest[:0]
    return np.concatenate([*(groups[place] for place in rng.permutation(len(groups))), short])


def random(clusters: Clusters, batch_size: int, share: float, rng: np.random.Generator) -> NDArray[np.int64]:  # noqa: ARG001
    """Return the domain's pairs in random order, as a control."""
    return rng.permutation(np.flatnonzero(clusters.assignment >= 0))


POLICIES: dict[str, Policy] = {"contextual": contextual, "random": random}


def _members(clusters: Clusters, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    shuffled = rng.permutation(np.flatnonzero(clusters.assignment >= 0))
    by_cluster = shuffled[np.argsort(clusters.assignment[shuffled], kind="stable")]
    return np.split(by_cluster, np.cumsum(clusters.sizes)[:-1])


def _remainders(
    clusters: Clusters, by_cluster: Sequence[NDArray[np.int64]], group: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the pairs that do not fill a group of their cluster, in the order of a tour over these clusters."""
    remaining = np.flatnonzero(clusters.sizes % group)
    if not len(remaining):
        return np.empty(0, dtype=np.int64)
    tour = short_tour(clusters.centroids[remaining].sum(axis=1), int(rng.integers(len(remaining))))
    return np.concatenate(
        [by_cluster[cluster][len(by_cluster[cluster]) // group * group :] for cluster in remaining[tour]]
    )
