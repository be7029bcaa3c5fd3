"""Orders: which pairs meet in which batch. Each is a stream of batches that does not end with the epochs asked for."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.clusters import Clusters
from benchmarks.methods import Batching, faiss_balanced, gcbs, reference
from experiments.common.small_models import BASE, stretch
from experiments.rivals.b3 import communities
from experiments.rivals.merrick import sources
from experiments.rivals.pairs import Training
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.cluster.side_sums import side_centroids
from stages.pack.params import PackParams
from stages.pack.plan import plan_batches

BATCH: int = BASE["pack"]["batch_size"]
Rows = NDArray[np.int64]
Order = Callable[[Training, int, int], Iterator[Rows]]
"""Takes the pairs, the number of epochs and a seed; yields batches ``(BATCH,)`` of rows, epoch after epoch."""


def steps(training: Training, epochs: int) -> int:
    """Number of batches of ``epochs`` epochs, in which each domain leaves out what does not fill a batch."""
    return epochs * sum(len(rows) // BATCH for rows in training.by_domain().values())


def random_over_all(training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Random batches; domains meet."""
    rng = np.random.default_rng([seed, 1])
    while True:
        yield from chop(rng.permutation(len(training)))


def ours(shares: list[float], training: Training, epochs: int, seed: int) -> Iterator[Rows]:
    """The batches of the stages cluster and pack; ``shares`` are stretched over the epochs. 0 is random."""
    schedule = stretch(shares, epochs)
    hard = max(1, sum(share > 0 for share in schedule))
    by_domain = training.by_domain()
    clusters = {
        name: [_clusters(training, rows, seed + draw, any(schedule)) for draw in range(hard)]
        for name, rows in by_domain.items()
    }
    params = PackParams(batch_size=BATCH, epochs=epochs, cluster_share=schedule, batches_per_shard=1)
    for batch in plan_batches(clusters, "contextual", params, seed):
        yield by_domain[batch.domain][batch.rows]


def once(batching: Batching, training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Batches that are made once for each domain and repeated every epoch in another order."""
    batches = _made_once(batching, training)
    return _epochs(seed, lambda _: list(batches))


def b3(training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Batches of random communities of their domain (B3, arXiv 2505.11293)."""

    def epoch(rng: np.random.Generator) -> list[Rows]:
        shuffled = [[groups[place] for place in rng.permutation(len(groups))] for groups in communities_of]
        return [batch for groups in shuffled for batch in chop(np.concatenate(groups))]

    communities_of = _communities(training, seed)
    return _epochs(seed, epoch)


def merrick(training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Random batches of one of a domain's ten clusters (Merrick, arXiv 2407.18887)."""
    groups = [
        rows[part] for rows in training.by_domain().values() for part in sources(training.vectors.take(rows), seed)
    ]
    return _epochs(seed, lambda rng: [batch for group in groups for batch in chop(rng.permutation(group))])


def after_random(order: Order, training: Training, epochs: int, seed: int) -> Iterator[Rows]:
    """Our random batches for the first half of the epochs, then another order."""
    first = ours([0.0], training, epochs, seed)
    for _ in range(steps(training, epochs) // 2):
        yield next(first)
    yield from order(training, epochs, seed)


def chop(rows: Rows) -> Iterator[Rows]:
    """Cut rows into whole batches."""
    return (rows[end - BATCH : end] for end in range(BATCH, len(rows) + 1, BATCH))


def _epochs(seed: int, epoch: Callable[[np.random.Generator], list[Rows]]) -> Iterator[Rows]:
    """Yield the batches of epoch after epoch, each in random order, unless an epoch has none."""
    for number in count():
        rng = np.random.default_rng([seed, number, 2])
        batches = epoch(rng)
        if not batches:
            return
        yield from (batches[place] for place in rng.permutation(len(batches)))


def _clusters(training: Training, rows: Rows, seed: int, needed: bool) -> Clusters:
    if not needed:  # random batches only count the pairs
        return Clusters(assignment=np.zeros(len(rows), np.int32), centroids=np.zeros((1, 2, 1), np.float32))
    vectors = training.vectors.take(rows)
    params = ClusterParams(vectors="surrogate", cluster_size=BATCH, iterations=BASE["cluster"]["iterations"])
    assignment = METHODS["balanced"](vectors, params, seed)
    return Clusters(assignment=assignment, centroids=side_centroids(vectors, assignment))


@lru_cache(maxsize=8)
def _made_once(batching: Batching, training: Training) -> NDArray[np.int64]:
    """Batches ``(n, BATCH)`` of all domains; made with the same seed whichever the run's seed is."""
    return np.concatenate(
        [rows[batching(training.vectors.take(rows), BATCH)[0]] for rows in training.by_domain().values()]
    )


@lru_cache(maxsize=8)
def _communities(training: Training, seed: int) -> list[list[Rows]]:
    """The communities of each domain."""
    return [
        [rows[part] for part in communities(training.vectors.take(rows), seed)]
        for rows in training.by_domain().values()
    ]


ORDERS: dict[str, Order] = {
    "random": partial(ours, [0.0]),
    "random over all": random_over_all,
    "ours": partial(ours, [0.0, 1.0]),
    "ours from the start": partial(ours, [1.0]),
    "reference": partial(once, reference),
    "faiss balanced": partial(once, faiss_balanced),
    "gcbs": partial(once, gcbs),
    "merrick": merrick,
    "b3": b3,
}
ORDERS |= {
    f"random, then {name}": partial(after_random, ORDERS[name]) for name in ("reference", "faiss balanced", "b3")
}
