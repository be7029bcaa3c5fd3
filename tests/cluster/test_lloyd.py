"""Variants of K-Means: their steps, when these stop, and the reference's settings."""

from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from stages.cluster.methods import METHODS
from stages.cluster.methods.lloyd import EARLY_STOP, joint_points, train
from stages.cluster.params import ClusterParams
from tests.cluster.planted import pair_vectors, planted

ALL = slice(None)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, NDArray[np.float32]]]:
    """Record every K-Means that FAISS runs, and the points that it runs on."""
    found: list[tuple[Any, NDArray[np.float32]]] = []

    class Watched(faiss.Kmeans):  # type: ignore[misc]
        def train(self, points: NDArray[np.float32], *rest: Any, **options: Any) -> float:
            found.append((self, points.copy()))
            return float(super().train(points, *rest, **options))

    monkeypatch.setattr(faiss, "Kmeans", Watched)
    return found


def test_steps_stop_when_one_gains_less_than_a_thousandth(trained: list[tuple[Any, NDArray[np.float32]]]) -> None:
    points = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)
    train(points, 10, iterations=200, seed=0)
    costs = trained[0][0].obj
    gains = (costs[:-1] - costs[1:]) / costs[:-1]
    assert 3 < len(costs) < 100
    assert gains[-1] < EARLY_STOP < gains[:-1].min()
    train(points, 10, iterations=2, seed=0)
    assert len(trained[1][0].obj) == 2


def test_mirrored_keeps_the_settings_of_the_reference_whatever_the_parameters_say(
    trained: list[tuple[Any, NDArray[np.float32]]],
) -> None:
    vectors, _ = planted(60, 3)
    METHODS["mirrored"](vectors, ClusterParams(vectors="any", cluster_size=10, iterations=1), 5)
    ((kmeans, points),) = trained
    settings = kmeans.cp
    assert (settings.niter, settings.nredo, settings.max_points_per_centroid) == (100, 3, 256)
    assert settings.spherical and settings.early_stop_threshold == 0
    assert (kmeans.k, settings.seed) == (6, 5)
    queries, documents = vectors.queries(ALL), vectors.documents(ALL)
    both = np.concatenate([np.hstack([queries, documents]), np.hstack([documents, queries])])
    np.testing.assert_allclose(points, both / np.linalg.norm(both, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("iterations", [1, 3, 60])
@pytest.mark.parametrize("seed", [0, 1])
def test_swapped_compares_queries_with_mean_documents_and_documents_with_mean_queries(
    iterations: int, seed: int
) -> None:
    queries, documents = np.random.default_rng(seed).normal(size=(2, 90, 4)).astype(np.float16).astype(np.float64)
    params = ClusterParams(vectors="any", cluster_size=15, iterations=iterations)
    vectors = pair_vectors(queries, documents)
    expected = slowly(queries, documents, METHODS["sum"](vectors, params, seed), iterations)
    np.testing.assert_array_equal(METHODS["swapped"](vectors, params, seed), expected)


def slowly(
    queries: NDArray[np.float64], documents: NDArray[np.float64], assignment: NDArray[np.int32], iterations: int
) -> NDArray[np.int64]:
    """Follow the definition, one cluster at a time."""
    found = assignment.astype(np.int64)
    costs: list[float] = []
    while len(costs) < iterations and (len(costs) < 2 or costs[-2] - costs[-1] >= EARLY_STOP * costs[-1]):
        distances = np.empty((len(queries), 6))
        for cluster in range(6):
            members = found == cluster
            assert members.any()
            from_query = ((queries - documents[members].mean(axis=0)) ** 2).sum(axis=1)
            distances[:, cluster] = from_query + ((documents - queries[members].mean(axis=0)) ** 2).sum(axis=1)
        found = distances.argmin(axis=1)
        costs.append(float(distances.min(axis=1).sum()))
    return found


def test_joint_points_are_queries_concatenated_with_their_documents() -> None:
    vectors, _ = planted(5, 2)
    expected = np.hstack([vectors.queries(ALL), vectors.documents(ALL)])
    np.testing.assert_array_equal(joint_points(vectors, ALL), expected)
