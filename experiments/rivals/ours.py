"""Our orders, from the functions of the stages cluster and pack."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from batchwright.formats.clusters import Clusters
from experiments.common.small_models import BASE, stretch
from experiments.rivals.pairs import Training
from experiments.rivals.streams import BATCH, Order, Rows, steps
from experiments.rivals.training import Batch
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.cluster.side_sums import side_centroids
from stages.pack.params import PackParams
from stages.pack.plan import plan_batches

HARD = 0.25
"""Share of a hard batch that one cluster fills, as in ``params.yaml``."""


def ours(
    shares: list[float], training: Training, epochs: int, seed: int, clusterings: int | None = None
) -> Iterator[Rows]:
    """The rows of ``grouped`` batches."""
    return (batch.rows for batch in grouped(shares, training, epochs, seed, clusterings))


def grouped(
    shares: list[float], training: Training, epochs: int, seed: int, clusterings: int | None = None
) -> Iterator[Batch]:
    """The batches of the stages cluster and pack; ``shares`` are stretched over the epochs. 0 is random.

    A cluster is as large as the largest share of a batch. Each hard epoch has a clustering of its own, or they take
    turns with so many ``clusterings``.
    """
    schedule = stretch(shares, epochs)
    hard = clusterings or max(1, sum(share > 0 for share in schedule))
    by_domain = training.by_domain()
    size = round(max(shares) * BATCH)
    clusters = {
        name: [clusters_of(training, rows, seed + draw, size) for draw in range(hard)]
        for name, rows in by_domain.items()
    }
    params = PackParams(batch_size=BATCH, epochs=epochs, cluster_share=schedule, batches_per_shard=1)
    for batch in plan_batches(clusters, "contextual", params, seed):
        found = clusters[batch.domain][batch.draw].assignment[batch.rows]
        groups = found if schedule[batch.epoch] > 0 else np.arange(BATCH)
        yield Batch(rows=by_domain[batch.domain][batch.rows], groups=groups)


def reclustered(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
    """Our schedule, but each hard epoch is clustered by the vectors of the model in training."""
    hard = epochs // 2
    yield from grouped([0.0], training, epochs - hard, seed)
    for epoch in range(hard):
        vectors = training.current() if training.current else training.vectors
        yield from grouped([HARD], replace(training, vectors=vectors), 1, seed + epoch)


def after_random(order: Order, training: Training, epochs: int, seed: int) -> Iterator[Rows]:
    """Our random batches for the first half of the epochs, then another order."""
    first = ours([0.0], training, epochs, seed)
    for _ in range(steps(training, epochs) // 2):
        yield next(first)
    yield from order(training, epochs, seed)


def over_all(order: Order, training: Training, epochs: int, seed: int) -> Iterator[Rows]:
    """Another order that takes all domains for one, so that domains meet in a batch."""
    return order(as_one(training), epochs, seed)


@cache
def as_one(training: Training) -> Training:
    """The same pairs in one domain."""
    return replace(training, domains=np.full(len(training), "all"))


def clusters_of(training: Training, rows: Rows, seed: int, size: int) -> Clusters:
    """Clusters of ``size`` pairs among some ``rows``."""
    if not size:  # random batches only count the pairs
        return Clusters(assignment=np.zeros(len(rows), np.int32), centroids=np.zeros((1, 2, 1), np.float32))
    vectors = training.vectors.take(rows)
    params = ClusterParams(vectors="surrogate", cluster_size=size, iterations=BASE["cluster"]["iterations"])
    assignment = METHODS["balanced"](vectors, params, seed)
    return Clusters(assignment=assignment, centroids=side_centroids(vectors, assignment))
