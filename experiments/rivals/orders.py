"""Orders of pairs, cut into batches: ours, and those that others have published."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import count

import faiss
import numpy as np
import pymetis
from numpy.typing import NDArray
from scipy.sparse import coo_matrix

from batchwright.formats.clusters import Clusters
from batchwright.formats.vectors import PairVectors
from experiments.batches.methods import Batching, faiss_balanced, gcbs, reference
from experiments.common.small_models import BASE, stretch
from experiments.rivals.sets import Training
from experiments.rivals.training import Batch
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.cluster.points import side_centroids, sum_points
from stages.pack.params import PackParams
from stages.pack.plan import plan_batches
from stages.pack.small_domains import merge_clusters
from stages.pack.tour import short_tour

HARD = 0.125
"""Share of a hard batch that one cluster fills, as in ``params.yaml``."""
B3_SKIPPED, B3_DEPTH, B3_SIZE = 30, 100, 32
"""The p, m and K of B3's paper."""
MERRICK_CLUSTERS, MERRICK_ITERATIONS = 10, 25
ALL = "all"
"""The one domain of pairs whose domains are ignored, or mixed."""
Rows = NDArray[np.int64]
Order = Callable[[Training, int, int], Iterator[Rows]]
"""Takes the pairs, the number of epochs and a seed; yields batches of rows, epoch after epoch."""


def steps(training: Training, epochs: int) -> int:
    """Number of batches of ``epochs`` epochs, in which each domain leaves out what does not fill a batch."""
    return epochs * sum(len(rows) // training.batch for rows in training.by_domain().values())


def chop(rows: Rows, size: int) -> Iterator[Rows]:
    """Cut rows into whole batches."""
    return (rows[end - size : end] for end in range(size, len(rows) + 1, size))


def epoch_after_epoch(seed: int, epoch: Callable[[np.random.Generator], list[Rows]]) -> Iterator[Rows]:
    """Yield the batches of epoch after epoch, each in random order, unless an epoch has none."""
    for number in count():
        rng = np.random.default_rng([seed, number, 2])
        batches = epoch(rng)
        if not batches:
            return
        yield from (batches[place] for place in rng.permutation(len(batches)))


def ours(shares: list[float], training: Training, epochs: int, seed: int) -> Iterator[Rows]:
    """The rows of ``grouped`` batches."""
    return (batch.rows for batch in grouped(shares, training, epochs, seed))


def grouped(shares: list[float], training: Training, epochs: int, seed: int, *, mixed: bool = False) -> Iterator[Batch]:
    """The batches of the stages cluster and pack; ``shares`` are stretched over the epochs. 0 is random.

    A cluster is as large as the largest share of a batch. Each hard epoch has a clustering of its own. Batches that are
    ``mixed`` have clusters of all domains.
    """
    schedule = stretch(shares, epochs)
    hard = max(1, sum(share > 0 for share in schedule))
    by_domain = training.by_domain()
    size = round(max(shares) * training.batch)
    clusters = {
        name: [_cached_clusters(training, name, seed + draw, size) for draw in range(hard)] for name in by_domain
    }
    if mixed:
        by_domain = {ALL: np.concatenate(list(by_domain.values()))}
        clusters = {ALL: [merge_clusters(draws) for draws in zip(*clusters.values(), strict=True)]}
    params = PackParams(batch_size=training.batch, epochs=epochs, cluster_share=schedule, batches_per_shard=1)
    for batch in plan_batches(clusters, "contextual", params, seed):
        cluster = clusters[batch.domain][batch.draw].assignment[batch.rows]
        groups = cluster if schedule[batch.epoch] > 0 else np.arange(training.batch)
        yield Batch(rows=by_domain[batch.domain][batch.rows], groups=groups)


def with_hard(
    change: Callable[[list[Batch], int], list[Batch]], training: Training, epochs: int, seed: int
) -> Iterator[Batch]:
    """``grouped`` batches, random ones first; those of each hard epoch are changed, given its number."""
    batches, count = list(grouped([0.0, HARD], training, epochs, seed)), steps(training, 1)
    for epoch, share in enumerate(stretch([0.0, HARD], epochs)):
        of_epoch = batches[epoch * count : (epoch + 1) * count]
        yield from change(of_epoch, epoch) if share else of_epoch


def groups_by_domain(batches: list[Batch], training: Training) -> Iterator[tuple[Rows, NDArray[np.integer]]]:
    """Yield the rows of each domain's hard batches, one line for each cluster's share of a batch, and their groups."""
    of_domain: dict[str, list[Batch]] = defaultdict(list)
    for batch in batches:
        of_domain[str(training.domains[batch.rows[0]])].append(batch)
    size = round(HARD * training.batch)
    for members in of_domain.values():
        rows = np.concatenate([batch.rows for batch in members])
        groups = np.concatenate([batch.groups for batch in members if batch.groups is not None])
        yield rows.reshape(-1, size), groups.reshape(-1, size)


def neighbouring(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
    """``grouped`` batches, random ones first; but hard ones hold clusters that follow each other on a tour."""
    return with_hard(lambda batches, epoch: along_tours(batches, training, seed + epoch), training, epochs, seed)


def along_tours(batches: list[Batch], training: Training, seed: int) -> list[Batch]:
    """The same groups in other batches: each domain's groups in the order of a tour, cut anew."""
    toured: list[Batch] = []
    for rows, groups in groups_by_domain(batches, training):
        centroids = sum_points(training.vectors, rows.ravel()).reshape(*rows.shape, -1).sum(axis=1)
        tour = short_tour(centroids, 0)
        cut = (part[tour].reshape(-1, training.batch) for part in (rows, groups))
        toured += [Batch(rows=batch, groups=of_batch) for batch, of_batch in zip(*cut, strict=True)]
    return [toured[place] for place in np.random.default_rng([seed, 3]).permutation(len(toured))]


@lru_cache(maxsize=64)
def _cached_clusters(training: Training, domain: str, seed: int, size: int) -> Clusters:
    """Clusters of a domain; the same for all settings that are tried."""
    return clusters_of(training, training.by_domain()[domain], seed, size)


def clusters_of(training: Training, rows: Rows, seed: int, size: int) -> Clusters:
    """Clusters of ``size`` pairs among some ``rows``, as the stage makes them."""
    if not size:  # random batches only count the pairs
        return Clusters(assignment=np.zeros(len(rows), np.int32), centroids=np.zeros((1, 2, 1), np.float32))
    vectors = training.vectors.take(rows)
    params = ClusterParams(vectors="surrogate", cluster_size=size, iterations=BASE["cluster"]["iterations"])
    repeated = [of for of in training.classes[:, rows] if len(np.unique(of)) < len(of)]
    assignment = METHODS["balanced"](vectors, params, seed, map, np.stack(repeated) if repeated else None)
    return Clusters(assignment=assignment, centroids=side_centroids(vectors, assignment))


@cache
def as_one(training: Training) -> Training:
    """The same pairs in one domain."""
    return replace(training, domains=np.full(len(training), ALL))


def once(batching: Batching, training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Batches that are made once for each domain and repeated every epoch in another order."""
    batches = _cached_batches(batching, training)
    return epoch_after_epoch(seed, lambda _: list(batches))


@lru_cache(maxsize=8)
def _cached_batches(batching: Batching, training: Training) -> NDArray[np.int64]:
    """Batches ``(n, B)`` of all domains; made with the same seed whichever the run's seed is."""
    return np.concatenate(
        [rows[batching(training.vectors.take(rows), training.batch)[0]] for rows in training.by_domain().values()]
    )


def b3(training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Batches of random communities of their domain (B3, arXiv 2505.11293)."""

    def epoch(rng: np.random.Generator) -> list[Rows]:
        shuffled = [[groups[place] for place in rng.permutation(len(groups))] for groups in communities_of]
        return [batch for groups in shuffled for batch in chop(np.concatenate(groups), training.batch)]

    communities_of = _cached_communities(training, seed)
    return epoch_after_epoch(seed, epoch)


@lru_cache(maxsize=8)
def _cached_communities(training: Training, seed: int) -> list[list[Rows]]:
    """The communities of each domain."""
    return [
        [rows[part] for part in communities(training.vectors.take(rows), seed)]
        for rows in training.by_domain().values()
    ]


def communities(vectors: PairVectors, seed: int) -> list[NDArray[np.int64]]:
    """Split pairs into B3's communities of about ``B3_SIZE``.

    An edge joins i and j if the rank of j's document for i's query, counted from 0, lies in [p, p + m]; METIS cuts the
    graph. Small sets leave out fewer ranks: at most a quarter of the pairs.
    """
    count = len(vectors)
    skipped = min(B3_SKIPPED, count // 4)
    last = min(skipped + B3_DEPTH + 1, count)
    queries, documents = vectors.queries(slice(None)), vectors.documents(slice(None))
    near = faiss.knn(queries, documents, last, metric=faiss.METRIC_INNER_PRODUCT)[1][:, skipped:]
    rows, columns = np.repeat(np.arange(count), near.shape[1]), near.ravel()
    apart = rows != columns
    rows, columns = rows[apart], columns[apart]
    graph = coo_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape=(count, count)).tocsr()
    graph = (graph + graph.T).tocsr()
    options = pymetis.Options(seed=seed)
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    part = np.asarray(pymetis.part_graph(max(1, count // B3_SIZE), adjacency, options=options)[1])
    order = np.argsort(part, kind="stable")
    return [group for group in np.split(order, np.cumsum(np.bincount(part))[:-1]) if len(group)]


def merrick(training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Random batches of one of a domain's ten clusters (Merrick, arXiv 2407.18887)."""
    groups = [
        rows[part]
        for rows in training.by_domain().values()
        for part in merrick_clusters(training.vectors.take(rows), seed)
    ]

    def epoch(rng: np.random.Generator) -> list[Rows]:
        return [batch for group in groups for batch in chop(rng.permutation(group), training.batch)]

    return epoch_after_epoch(seed, epoch)


def merrick_clusters(vectors: PairVectors, seed: int) -> list[NDArray[np.int64]]:
    """Split pairs into Merrick's ten clusters by spherical K-Means on their documents."""
    documents = vectors.documents(slice(None))
    means = faiss.Kmeans(vectors.width, MERRICK_CLUSTERS, niter=MERRICK_ITERATIONS, spherical=True, seed=seed + 1)
    means.train(documents)
    nearest = means.index.search(documents, 1)[1][:, 0]
    return [np.flatnonzero(nearest == number) for number in range(MERRICK_CLUSTERS)]


ORDERS: dict[str, Order] = {
    "random": partial(ours, [0.0]),
    "reference": partial(once, reference),
    "faiss balanced": partial(once, faiss_balanced),
    "gcbs": partial(once, gcbs),
    "merrick": merrick,
    "b3": b3,
}
