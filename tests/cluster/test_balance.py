"""Balanced clusters: sizes, filling, and improvements that never make things worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.core.grid import unit
from stages.cluster.equal import equal_clusters, fill, improve
from stages.cluster.exchange import exchange_pairs
from stages.cluster.methods import METHODS, _best, regroup, split_into_cells
from stages.cluster.params import ClusterParams
from tests.cluster.planted import objective, pair_vectors, planted, value


def random_points(k: int, size: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(k * size, 6)).astype(np.float32)


@given(pairs=st.integers(1, 80), cluster_size=st.integers(1, 20), resident=st.sampled_from([1, 20, 1000]))
@settings(max_examples=40, deadline=None)
def test_every_cluster_has_the_requested_size_apart_from_left_over_pairs(
    pairs: int, cluster_size: int, resident: int
) -> None:
    vectors = pair_vectors(*np.random.default_rng(0).normal(size=(2, pairs, 4)))
    params = ClusterParams(vectors="any", cluster_size=cluster_size, iterations=5, resident_pairs=resident)
    sizes = np.bincount(METHODS["balanced"](vectors, params, 0))
    assert len(sizes) == max(1, pairs // cluster_size)
    assert sizes.min() >= min(pairs, cluster_size)
    assert sizes.sum() == pairs


def test_left_over_pairs_join_the_most_similar_cluster() -> None:
    directions = np.repeat(np.eye(3, 6), [9, 9, 8], axis=0)
    assignment = METHODS["balanced"](
        pair_vectors(directions, directions), ClusterParams(vectors="any", cluster_size=8, iterations=5), 0
    )
    together = [np.unique(assignment[topic]) for topic in (slice(0, 9), slice(9, 18), slice(18, 26))]
    assert sorted(of.tolist() for of in together) == [[0], [1], [2]]


def test_a_left_over_pair_joins_the_cluster_to_which_its_query_and_document_add_most() -> None:
    means = unit(np.random.default_rng(0).normal(size=(10, 4))).reshape(5, 2, 4)
    queries, documents = unit(np.random.default_rng(1).normal(size=(14, 4))).reshape(2, 7, 4)
    added = queries @ means[:, 1].T + documents @ means[:, 0].T
    np.testing.assert_array_equal(_best(np.hstack([queries, documents]), 3 * means, 3, 1)[:, 0], added.argmax(axis=1))


@given(places=st.integers(1, 6), size=st.integers(1, 6), choices=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_filling_gives_every_point_a_place_and_fills_no_place_beyond_its_capacity(
    places: int, size: int, choices: int, seed: int
) -> None:
    scores = np.random.default_rng(seed).normal(size=(places * size, places)).astype(np.float32)

    def nearest(waiting: NDArray[np.int64], among: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        offered = scores[np.ix_(waiting, among)]
        best = np.argsort(-offered, axis=1)[:, :choices]
        return np.take_along_axis(offered, best, axis=1), best

    placed = fill(nearest, places * size, np.full(places, size))
    assert np.bincount(placed, minlength=places).tolist() == [size] * places
    if choices >= places:
        assert is_stable(placed, scores)


def is_stable(placed: NDArray[np.int64], scores: NDArray[np.float32]) -> bool:
    """Return whether no point and place would both prefer each other to what they have."""
    worst = np.array([scores[placed == place, place].min() for place in range(scores.shape[1])])
    envied = scores > scores[np.arange(len(placed)), placed][:, None]
    return not (envied & (scores > worst)).any()


@given(k=st.integers(1, 6), size=st.integers(1, 8), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_no_step_lowers_the_objective_or_loses_a_point(k: int, size: int, seed: int) -> None:
    points = random_points(k, size, seed)
    rng = np.random.default_rng(seed)
    start = rng.permutation(k * size).reshape(k, size)
    for found in (improve(points, start), exchange_pairs(points, start, rng)):
        assert found.shape == (k, size)
        assert sorted(found.ravel().tolist()) == list(range(k * size))
        assert value(points, found) >= value(points, start) - 1e-3


def test_exchanging_finds_the_best_division_of_two_mixed_clusters() -> None:
    directions = np.repeat(np.eye(2, 6, dtype=np.float32), 8, axis=0)
    points = np.concatenate([directions, directions], axis=1)
    mixed = np.array([[*range(5), *range(8, 11)], [*range(5, 8), *range(11, 16)]])
    found = exchange_pairs(points, mixed, np.random.default_rng(0))
    assert sorted(map(sorted, found.tolist())) == [list(range(8)), list(range(8, 16))]


def test_exchanging_improves_on_k_means_and_filling() -> None:
    points = random_points(12, 10, 3)
    rng = np.random.default_rng(0)
    start = equal_clusters(points, 10, 5, rng)
    assert value(points, exchange_pairs(points, start, rng)) > value(points, start)


@pytest.mark.parametrize("most", [1, 3, 7, 100])
def test_cells_and_groups_contain_everything_once_and_stay_within_their_limits(most: int) -> None:
    vectors, _ = planted(300, 6)
    pairs = np.sort(np.random.default_rng(0).permutation(300)[:290])
    cells = split_into_cells(vectors, pairs, 10, most, np.random.default_rng(0))
    assert sorted(np.concatenate(cells).tolist()) == pairs.tolist()
    assert all(len(cell) % 10 == 0 and len(cell) <= 10 * most for cell in cells)
    groups = regroup(vectors, pairs.reshape(29, 10), most, np.random.default_rng(1), map)
    assert sorted(np.concatenate(groups).tolist()) == list(range(29))
    assert all(len(group) <= most for group in groups)


def test_permuted_pairs_give_equally_good_clusters() -> None:
    vectors, _ = planted(400, 8)
    order = np.random.default_rng(3).permutation(400)
    params = ClusterParams(vectors="any", cluster_size=20, iterations=10)
    points = np.concatenate([vectors.queries(slice(None)), vectors.documents(slice(None))], axis=1)
    found = [METHODS["balanced"](vectors, params, 0), METHODS["balanced"](vectors.take(order), params, 0)]
    values = [
        value(of, np.argsort(assignment, kind="stable").reshape(20, 20))
        for of, assignment in zip((points, points[order]), found, strict=True)
    ]
    assert values[1] == pytest.approx(values[0], rel=0.03)


def shared_in_clusters(assignment: NDArray[np.int32], classes: NDArray[np.int32]) -> int:
    """Count the pairs whose cluster has an earlier one of their query or document."""
    return sum(len(of) - len(set(zip(assignment.tolist(), of.tolist(), strict=True))) for of in classes)


@given(k=st.integers(2, 8), size=st.integers(2, 8), more=st.integers(0, 7), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_pairs_of_one_document_go_to_different_clusters_if_there_are_as_many(
    k: int, size: int, more: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pairs = k * size + min(more, size - 1)
    repeats = rng.integers(1, k + 1, size=pairs)
    classes = np.repeat(np.arange(pairs, dtype=np.int32), repeats)[None, rng.permutation(pairs)]
    directions = unit(rng.normal(size=(pairs, 12))[classes[0]] + 0.3 * rng.normal(size=(pairs, 12)))
    vectors, params = pair_vectors(directions, directions), ClusterParams(vectors="any", cluster_size=size)
    found = METHODS["balanced"](vectors, params, seed, map, classes)
    assert np.bincount(found).min() >= size
    assert shared_in_clusters(found, classes) == 0
    np.testing.assert_array_equal(METHODS["balanced"](vectors, params, seed, map, classes), found)


def test_of_queries_and_documents_that_repeat_a_cluster_has_one_pair_each() -> None:
    vectors, truth = planted(330, 6)
    rng = np.random.default_rng(0)
    classes = np.stack([truth * 20 + rng.integers(20, size=330), rng.integers(90, size=330)]).astype(np.int32)
    params = ClusterParams(vectors="any", cluster_size=10)
    before, after = (METHODS["balanced"](vectors, params, 0, map, of) for of in (None, classes))
    assert shared_in_clusters(before, classes) > 50
    assert shared_in_clusters(after, classes) == 0
    assert objective(vectors, after) > 0.9 * objective(vectors, before)


def test_a_document_of_more_pairs_than_clusters_is_spread_as_far_as_it_goes() -> None:
    vectors, _ = planted(60, 3)
    classes = np.where(np.arange(60) < 20, 0, np.arange(60))[None].astype(np.int32)
    found = METHODS["balanced"](vectors, ClusterParams(vectors="any", cluster_size=10), 0, map, classes)
    assert np.bincount(found).tolist() == [10] * 6
    assert np.bincount(found[:20], minlength=6).min() >= 1


def test_classes_that_never_repeat_change_nothing() -> None:
    vectors, _ = planted(203, 6)
    params = ClusterParams(vectors="any", cluster_size=10, resident_pairs=100)
    without, alone = (
        METHODS["balanced"](vectors, params, 0, map, of) for of in (None, np.arange(203, dtype=np.int32)[None])
    )
    np.testing.assert_array_equal(alone, without)
