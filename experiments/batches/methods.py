"""Methods to make batches: ours, the paper's reference and others from the literature."""

import math
from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
from faiss.contrib.clustering import balanced_assignment_with_penalties
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

from batchwright.core.grid import unit
from batchwright.core.neighbours import kmeans, on_gpu
from batchwright.formats.clusters import Clusters
from batchwright.formats.vectors import PairVectors, blocks
from stages.cluster import exchange, methods
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.cluster.points import joint_points, sample, side_centroids, sum_points
from stages.pack.plan import contextual
from stages.pack.tour import greedy_tour

SEED = 17
ITERATIONS = 5
NEIGHBOURS = 64
MOST_TRAINING_PAIRS = 100_000
"""Pairs that the reference's K-Means is trained on; FAISS takes 256 of them per centroid."""
REFERENCE_ITERATIONS, REFERENCE_RUNS = 100, 3

Batches = NDArray[np.int64]
Batching = Callable[[PairVectors, int], tuple[Batches, NDArray[np.int64]]]
"""Takes vectors and the batch size; returns batches ``(n, B)`` of row numbers and the sizes of the clusters."""


def random(vectors: PairVectors, batch: int) -> tuple[Batches, NDArray[np.int64]]:
    """Batches drawn at random."""
    return _chop(np.random.default_rng(SEED).permutation(len(vectors)), batch), np.empty(0, np.int64)


def reference(vectors: PairVectors, batch: int) -> tuple[Batches, NDArray[np.int64]]:
    """Batches like the reference implementation's: mirrored K-Means, the clusters concatenated along a greedy tour
    over their document centroids and cut into batches."""
    assignment = mirrored_k_means(vectors, batch, SEED)
    return _along_tour(vectors, assignment, batch)


def mirrored_k_means(vectors: PairVectors, cluster_size: int, seed: int) -> NDArray[np.int32]:
    """Return the cluster of each pair, ``(N,)``, by the reference implementation of Contextual Document Embeddings.

    Spherical K-Means is trained on both [q | d] and [d | q], and each pair is assigned by its [q | d].
    """
    k = math.ceil(len(vectors) / cluster_size)
    if k <= 1:
        return np.zeros(len(vectors), dtype=np.int32)
    points = joint_points(vectors, sample(len(vectors), max(MOST_TRAINING_PAIRS, k), seed))
    queries, documents = np.split(points, 2, axis=1)
    both = np.concatenate([points, np.concatenate([documents, queries], axis=1)])
    faiss.normalize_L2(both)
    kmeans = faiss.Kmeans(
        both.shape[1], k, niter=REFERENCE_ITERATIONS, nredo=REFERENCE_RUNS, spherical=True, seed=seed, gpu=on_gpu()
    )
    kmeans.train(both)
    nearest = [kmeans.index.search(joint_points(vectors, block), 1)[1][:, 0] for block in blocks(len(vectors))]
    return np.concatenate(nearest).astype(np.int32)


def faiss_balanced(vectors: PairVectors, batch: int) -> tuple[Batches, NDArray[np.int64]]:
    """K-Means on q + d, assigned with FAISS's size penalties (Tavenard et al., 2011), cut along the same tour."""
    points = sum_points(vectors, slice(None))
    k = math.ceil(len(points) / batch)
    centroids = kmeans(points, k, iterations=20, seed=SEED)
    assignment, _ = balanced_assignment_with_penalties(points, centroids, maxk=min(k, 100))
    return _along_tour(vectors, assignment.astype(np.int32), batch)


def gcbs(vectors: PairVectors, batch: int) -> tuple[Batches, NDArray[np.int64]]:
    """The reverse Cuthill-McKee order over the graph of the most similar queries and documents (Sachidananda et al.,
    2023), cut into batches. The graph joins nearest neighbours above their median similarity."""
    queries, documents = vectors.queries(slice(None)), vectors.documents(slice(None))
    count = len(queries)
    scores, near = faiss.knn(queries, documents, min(NEIGHBOURS, count), metric=faiss.METRIC_INNER_PRODUCT)
    kept = (scores >= np.median(scores)).ravel()
    rows, columns = np.repeat(np.arange(count), near.shape[1])[kept], near.ravel()[kept]
    graph = coo_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape=(count, count)).tocsr()
    order = reverse_cuthill_mckee((graph + graph.T).tocsr(), symmetric_mode=True)
    return _chop(order.astype(np.int64), batch), np.empty(0, np.int64)


def clustered(method: str, vectors: PairVectors, batch: int, **changes: int) -> tuple[Batches, NDArray[np.int64]]:
    """One of this project's clustering methods with its packing."""
    assignment = METHODS[method](vectors, _params(method, batch, **changes), SEED)
    clusters = _clusters(vectors, assignment)
    # Another seed: with the clusters' own, packing would leave over the very pairs that clusters had no room for.
    return _chop(contextual(clusters, batch, 1.0, np.random.default_rng(SEED + 1)), batch), clusters.sizes


def optimum(vectors: PairVectors, batch: int) -> tuple[Batches, NDArray[np.int64]]:
    """``balanced`` without cells, whose pairs are exchanged until hardly any two of 64 neighbouring clusters gain."""
    methods.MOST_CLUSTERS = len(vectors)
    exchange.NEIGHBOURS, exchange.ROUNDS, exchange.STALL, exchange.LEAST_GAIN = 64, 10_000, 64, 1e-6
    return clustered("balanced", vectors, batch, resident_pairs=len(vectors))


def _params(method: str, size: int, **changes: int) -> ClusterParams:
    params = {"vectors": "any", "method": method, "cluster_size": size, "iterations": ITERATIONS, **changes}
    return ClusterParams.model_validate(params)


def _clusters(vectors: PairVectors, assignment: NDArray[np.int32]) -> Clusters:
    return Clusters(assignment=assignment, centroids=side_centroids(vectors, assignment))


def _along_tour(vectors: PairVectors, assignment: NDArray[np.int32], batch: int) -> tuple[Batches, NDArray[np.int64]]:
    clusters = _clusters(vectors, assignment)
    used = np.flatnonzero(clusters.sizes)
    tour = used[greedy_tour(unit(clusters.centroids[used, 1]), 0)]
    return _in_order(assignment, tour, batch), clusters.sizes[used]


def _in_order(assignment: NDArray[np.int32], clusters: NDArray[np.int64], batch: int) -> Batches:
    """Concatenate the clusters in the order given, and cut them into batches."""
    place = np.empty(clusters.max() + 1, dtype=np.int64)
    place[clusters] = np.arange(len(clusters))
    return _chop(np.argsort(place[assignment], kind="stable"), batch)


def _chop(rows: NDArray[np.int64], batch: int) -> Batches:
    count = len(rows) // batch
    return rows[: count * batch].reshape(count, batch)


ALL: dict[str, Batching] = {
    "random": random,
    "reference": reference,
    "faiss_balanced": faiss_balanced,
    "gcbs": gcbs,
    **{name: partial(clustered, name) for name in METHODS},
    "optimum": optimum,
}
DEFAULT = ("random", "reference", "faiss_balanced", "gcbs", "balanced")
