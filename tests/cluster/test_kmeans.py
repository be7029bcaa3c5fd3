"""Clustering of pairs by the sums of their vectors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.cluster.kmeans import cluster_pairs, side_centroids
from tests.helpers import planted_vectors, topic_pairs

Vectors = NDArray[np.float32]


def planted(pairs: int, topics: int) -> tuple[Vectors, Vectors, NDArray[np.int64]]:
    texts = topic_pairs(pairs, topics)
    queries, documents = zip(*texts, strict=True)
    truth = np.array([int(query.split()[0].removeprefix("topic")) for query in queries])
    return planted_vectors(list(queries)).astype(np.float32), planted_vectors(list(documents)).astype(np.float32), truth


def clustered(queries: Vectors, documents: Vectors, cluster_size: int, seed: int = 0) -> NDArray[np.int32]:
    return cluster_pairs(queries, documents, cluster_size=cluster_size, iterations=20, seed=seed)


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_every_pair_is_in_one_of_the_clusters(pairs: int, cluster_size: int, seed: int) -> None:
    queries, documents = np.random.default_rng(seed).normal(size=(2, pairs, 4)).astype(np.float32)
    assignment = clustered(queries, documents, cluster_size, seed)
    assert assignment.shape == (pairs,)
    assert assignment.dtype == np.int32
    assert 0 <= assignment.min() <= assignment.max() < math.ceil(pairs / cluster_size)


@pytest.mark.parametrize("cluster_size", [1, 3, 10, 100])
def test_pairs_that_are_all_the_same_are_clustered(cluster_size: int) -> None:
    same = np.ones((10, 4), np.float32)
    assert clustered(same, same, cluster_size).shape == (10,)


def test_no_pairs_have_no_clusters() -> None:
    none = np.empty((0, 4), np.float32)
    assert clustered(none, none, 10).shape == (0,)
    assert side_centroids(none, none, np.empty(0, np.int32)).shape == (1, 2, 4)


def test_the_same_seed_gives_the_same_clusters_and_another_seed_others() -> None:
    queries, documents, _ = planted(300, 12)
    first = clustered(queries, documents, 20, seed=5)
    np.testing.assert_array_equal(first, clustered(queries, documents, 20, seed=5))
    assert (first != clustered(queries, documents, 20, seed=6)).any()


def test_planted_topics_are_found() -> None:
    queries, documents, truth = planted(400, 4)
    assignment = clustered(queries, documents, cluster_size=50)
    purity = sum(np.bincount(truth[assignment == cluster]).max() for cluster in np.unique(assignment)) / len(truth)
    assert purity > 0.95


def objective(queries: Vectors, documents: Vectors, assignment: NDArray[np.int32]) -> float:
    """Contextual Document Embeddings, eq. 2: similarity of every query with every document of its cluster."""
    return sum(
        float(queries[assignment == cluster].sum(0) @ documents[assignment == cluster].sum(0))
        for cluster in np.unique(assignment)
    )


def test_the_objective_is_far_better_than_that_of_random_clusters_of_the_same_sizes() -> None:
    queries, documents, _ = planted(400, 8)
    assignment = clustered(queries, documents, cluster_size=25)
    shuffled = np.random.default_rng(0).permutation(assignment)
    assert objective(queries, documents, assignment) > 2 * objective(queries, documents, shuffled)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30))
def test_centroids_are_the_means_of_each_side(assigned: list[int]) -> None:
    assignment = np.array(assigned, np.int32)
    queries, documents = np.random.default_rng(0).normal(size=(2, len(assigned), 3)).astype(np.float32)
    centroids = side_centroids(queries, documents, assignment)
    assert centroids.shape == (max(assigned) + 1, 2, 3)
    for cluster, (query, document) in enumerate(centroids):
        members = [row for row, of in enumerate(assigned) if of == cluster]
        for side, vectors in ((query, queries), (document, documents)):
            mean = np.mean([vectors[row] for row in members], axis=0) if members else np.zeros(3)
            np.testing.assert_allclose(side, mean, atol=1e-6)
