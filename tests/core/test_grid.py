"""Numbers on the grid, and that sums of them are exact in any order."""

from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.core.grid import COARSE, STEP, rounded, unit
from batchwright.core.neighbours import kmeans, knn
from stages.cluster.methods import balanced
from stages.cluster.params import ClusterParams
from stages.filter.rules import likeness_limit
from stages.pack.tour import short_tour
from tests.cluster.planted import pair_vectors

WIDTHS = st.sampled_from([1, 3, 16, 256, 1024])
SEEDS = st.integers(0, 2**32 - 1)


def on_grid(width: int, seed: int, count: int = 40) -> NDArray[np.float32]:
    """Unit vectors in groups whose members are near each other."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, count // 8), width))
    return unit(centres[rng.integers(len(centres), size=count)] + rng.normal(size=(count, width)))


@given(WIDTHS, SEEDS)
def test_vectors_have_unit_length_but_for_rounding_and_keep_their_direction(width: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(20, width)) * 10.0 ** np.random.default_rng(seed).integers(-9, 9)
    found = unit(vectors)
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(found - expected).max() <= STEP / 2
    np.testing.assert_array_equal(found, found.astype(np.float16))
    np.testing.assert_array_equal(found / np.float32(STEP) % 1, 0)


def test_zero_stays_zero_and_no_zero_is_negative() -> None:
    found = unit(np.array([[0.0, 0.0], [-1e-9, 1.0], [1e-3, 1e-3]]), least=0.1)
    assert found.tolist() == [[0, 0], [0, 1], [0, 0]]
    assert not np.signbit(found).any()
    assert not np.signbit(rounded(np.array([[-1e-9]], np.float32))).any()


@given(WIDTHS, SEEDS)
@example(3, 1_018_983_033)  # rounding makes a vector longer than 1
def test_inner_products_are_exact(width: int, seed: int) -> None:
    vectors = on_grid(width, seed)
    steps = np.rint(vectors / np.float32(STEP)).astype(np.int64)
    products, exact = vectors @ vectors.T, (steps @ steps.T) * STEP**2
    np.testing.assert_array_equal(products.astype(np.float64), exact)
    np.testing.assert_array_equal((products + products.diagonal()).astype(np.float64), exact + exact.diagonal())


@pytest.mark.parametrize("inner_product", [False, True])
@given(WIDTHS, SEEDS)
def test_the_order_of_dimensions_changes_no_neighbour(inner_product: bool, width: int, seed: int) -> None:
    points = rounded(on_grid(width, seed) + on_grid(width, seed + 1), COARSE)
    other = points[:, np.random.default_rng(seed).permutation(width)]
    for one, another in zip(
        *(knn(some, some, 5, inner_product=inner_product) for some in (points, other)), strict=True
    ):
        np.testing.assert_array_equal(one, another)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_dimensions_changes_no_cluster_tour_or_limit(seed: int) -> None:
    """Another order of sums is what another instruction set, library or number of threads makes of them."""
    width, pairs = 48, 600
    queries, documents = on_grid(width, seed, pairs), on_grid(width, seed + 100, pairs)
    order = np.random.default_rng(seed).permutation(width)
    vectors, others = pair_vectors(queries, documents), pair_vectors(queries[:, order], documents[:, order])
    params = ClusterParams(vectors="given", cluster_size=8, resident_pairs=160)
    np.testing.assert_array_equal(balanced(vectors, params, seed), balanced(others, params, seed))
    np.testing.assert_array_equal(short_tour(queries, 3), short_tour(queries[:, order], 3))
    classes = np.arange(pairs, dtype=np.int32)
    sure = np.zeros(pairs, bool)
    limits = [likeness_limit(of, classes, classes, np.random.default_rng(seed), sure) for of in (vectors, others)]
    assert limits[0] == limits[1]


def test_all_that_is_searched_for_clusters_and_tours_has_exact_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that is not exact may still be the same in another order of these dimensions."""
    largest: list[float] = []

    def compare(one: NDArray[np.float32], other: NDArray[np.float32], metric: int) -> None:
        lengths = [float(np.linalg.norm(of.astype(np.float64), axis=1).max()) for of in (one, other)]
        most = sum(lengths) ** 2 if metric == faiss.METRIC_L2 else lengths[0] * lengths[1]
        largest.append(most * 4.0 ** max(map(_step, (one, other))))

    def search(one: NDArray[np.float32], other: NDArray[np.float32], k: int, metric: int) -> Any:
        compare(one, other, metric)
        return found(one, other, k, metric=metric)

    def learn(self: faiss.Kmeans, points: NDArray[np.float32]) -> Any:
        compare(points, points, faiss.METRIC_L2)
        return learnt(self, points)

    found, learnt = faiss.knn, faiss.Kmeans.train
    monkeypatch.setattr(faiss, "knn", search)
    monkeypatch.setattr(faiss.Kmeans, "train", learn)
    queries, documents = on_grid(48, 0, 600), on_grid(48, 100, 600)
    vectors = pair_vectors(queries, documents)
    balanced(vectors, ClusterParams(vectors="given", cluster_size=8, resident_pairs=160), 0)
    short_tour(queries, 3)
    assert len(largest) > 20
    assert max(largest) <= 2**24


def _step(vectors: NDArray[np.float32]) -> int:
    """The smallest n for which all numbers are multiples of 2 ** -n."""
    return next(n for n in range(-11, 40) if not np.any(vectors * np.float32(2.0**n) % 1))


@given(WIDTHS, SEEDS)
def test_centroids_are_means_in_coarse_steps(width: int, seed: int) -> None:
    exact = on_grid(width, seed) + on_grid(width, seed + 1)
    points = rounded(exact, COARSE)
    np.testing.assert_allclose(kmeans(points, 1, iterations=3, seed=0)[0], points.mean(axis=0), atol=COARSE)
    found = kmeans(points, 5, iterations=3, seed=0)
    np.testing.assert_array_equal(found, kmeans(exact, 5, iterations=3, seed=0))
    np.testing.assert_array_equal(found / np.float32(COARSE) % 1, 0)
