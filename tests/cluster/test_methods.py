"""Clustering methods: what all of them guarantee, and how good their clusters are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.formats.clusters import NONE
from batchwright.formats.vectors import PairVectors
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.cluster.points import side_centroids
from tests.cluster.planted import objective, pair_vectors, planted

Vectors = NDArray[np.float32]


def clustered(method: str, vectors: PairVectors, cluster_size: int, seed: int = 0, **more: int) -> NDArray[np.int32]:
    params = {"vectors": "any", "method": method, "cluster_size": cluster_size, "iterations": 20, **more}
    return METHODS[method](vectors, ClusterParams.model_validate(params), seed)


@pytest.mark.parametrize("method", METHODS)
@given(pairs=st.integers(0, 60), cluster_size=st.integers(1, 70), seed=st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_every_pair_is_in_one_of_the_expected_number_of_clusters(
    method: str, pairs: int, cluster_size: int, seed: int
) -> None:
    vectors = pair_vectors(*np.random.default_rng(seed).normal(size=(2, pairs, 4)))
    assignment = clustered(method, vectors, cluster_size, seed)
    assert assignment.shape == (pairs,)
    assert assignment.dtype == np.int32
    assert assignment.min(initial=0) >= 0
    assert assignment.max(initial=0) < max(1, -(-pairs // cluster_size))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("cluster_size", [1, 3, 10, 100])
def test_pairs_whose_vectors_are_all_equal_or_zero_are_clustered(method: str, value: int, cluster_size: int) -> None:
    same = np.full((10, 4), value)
    assert clustered(method, pair_vectors(same, same), cluster_size).shape == (10,)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_clusters_and_another_seed_different_ones(method: str) -> None:
    vectors, _ = planted(300, 12)
    first = clustered(method, vectors, 20, seed=5)
    np.testing.assert_array_equal(first, clustered(method, vectors, 20, seed=5))
    assert (first != clustered(method, vectors, 20, seed=6)).any()


@pytest.mark.parametrize("method", METHODS)
def test_planted_topics_are_found(method: str) -> None:
    vectors, truth = planted(400, 4)
    assignment = clustered(method, vectors, cluster_size=50)
    purity = sum(np.bincount(truth[assignment == cluster]).max() for cluster in np.unique(assignment)) / len(truth)
    assert purity > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_the_objective_is_far_better_than_that_of_random_clusters_of_the_same_sizes(method: str) -> None:
    vectors, _ = planted(400, 8)
    assignment = clustered(method, vectors, cluster_size=25)
    shuffled = np.random.default_rng(0).permutation(assignment)
    assert objective(vectors, assignment) > 2 * objective(vectors, shuffled)


@pytest.mark.parametrize("method", METHODS)
def test_few_pairs_in_memory_give_nearly_as_good_clusters(method: str) -> None:
    vectors, _ = planted(600, 12)
    whole = objective(vectors, clustered(method, vectors, cluster_size=10))
    bounded = objective(vectors, clustered(method, vectors, cluster_size=10, resident_pairs=200))
    assert bounded > 0.9 * whole


@given(st.lists(st.integers(NONE, 6), min_size=1, max_size=30))
def test_centroids_are_the_means_of_each_side(assigned: list[int]) -> None:
    assignment = np.array(assigned, np.int32)
    queries, documents = np.random.default_rng(0).integers(-8, 8, size=(2, len(assigned), 3))
    centroids = side_centroids(pair_vectors(queries, documents), assignment)
    assert centroids.shape == (max(0, *assigned, -1) + 1, 2, 3)
    for cluster, (query, document) in enumerate(centroids):
        members = [row for row, of in enumerate(assigned) if of == cluster]
        for side, vectors in ((query, queries), (document, documents)):
            mean = np.mean([vectors[row] for row in members], axis=0) if members else np.zeros(3)
            np.testing.assert_allclose(side, mean, atol=1e-6)
