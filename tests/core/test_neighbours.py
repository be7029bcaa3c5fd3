"""Nearest neighbours and K-Means go to the GPU if FAISS finds one: here a pretended one, on the CPU."""

from typing import Any

import faiss
import numpy as np
import pytest

from batchwright.core.neighbours import MOST_ON_GPU, _resources, knn
from benchmarks.faiss_gpu import SMALL, compare
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.filter.rank import nearest
from stages.pack.tour import short_tour
from tests.cluster.planted import planted

RNG = np.random.default_rng(0)


class PretendedGpu:
    """Searches as FAISS does on the CPU, and remembers which K-Means were to run on the GPU."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.searches, self.k_means = 0, []
        train = faiss.Kmeans

        def search(resources: str, *searched: Any, metric: int) -> Any:
            assert resources == "resources"
            self.searches += 1
            return faiss.knn(*searched, metric=metric)

        def k_means(*sizes: int, gpu: bool, **options: Any) -> Any:
            self.k_means.append(gpu)
            return train(*sizes, **options)

        monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
        monkeypatch.setattr(faiss, "StandardGpuResources", lambda: "resources", raising=False)
        monkeypatch.setattr(faiss, "knn_gpu", search)
        monkeypatch.setattr(faiss, "Kmeans", k_means)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch):
    _resources.cache_clear()
    yield PretendedGpu(monkeypatch)
    _resources.cache_clear()


@pytest.mark.parametrize("inner_product", [False, True])
def test_neighbours_are_those_of_a_sort(inner_product: bool) -> None:
    queries, vectors = (RNG.integers(-4, 5, (count, 6)).astype(np.float32) for count in (9, 50))
    found, rows = knn(queries, vectors, 5, inner_product=inner_product)
    products = queries @ vectors.T
    every = products if inner_product else ((queries[:, None] - vectors) ** 2).sum(axis=2)
    ranked = -np.sort(-every, axis=1) if inner_product else np.sort(every, axis=1)
    np.testing.assert_array_equal(found, ranked[:, :5])
    np.testing.assert_array_equal(np.take_along_axis(every, rows, axis=1), found)


@pytest.mark.parametrize("method", METHODS)
def test_every_clustering_searches_on_the_gpu_and_finds_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = planted(300, 4)[0]
    params = ClusterParams(vectors="v", method=method, cluster_size=16, iterations=3)
    on_cpu = METHODS[method](vectors, params, 1)
    gpu = PretendedGpu(monkeypatch)
    np.testing.assert_array_equal(METHODS[method](vectors, params, 1), on_cpu)
    assert gpu.k_means and all(gpu.k_means)
    assert gpu.searches


def test_the_filter_and_the_tour_search_on_the_gpu(gpu: PretendedGpu) -> None:
    vectors = planted(40, 4)[0]
    nearest(vectors.queries(slice(0, 5)), vectors, np.arange(40), 3)
    assert gpu.searches == 1
    short_tour(vectors.sums(slice(None)), 0)
    assert gpu.searches > 1


def test_more_neighbours_than_a_gpu_can_find_are_searched_on_the_cpu(gpu: PretendedGpu) -> None:
    vectors = np.eye(MOST_ON_GPU + 1, 4, dtype=np.float32)
    assert knn(vectors[:1], vectors, MOST_ON_GPU + 1)[1].shape == (1, MOST_ON_GPU + 1)
    assert gpu.searches == 0


def test_the_benchmark_compares_both(gpu: PretendedGpu) -> None:
    found = {row["part"]: row["same"] for row in compare(SMALL)}
    assert found == {"neighbours": 1, "K-Means": 1, "clusters": 1}
    assert gpu.searches and any(gpu.k_means) and not all(gpu.k_means)
