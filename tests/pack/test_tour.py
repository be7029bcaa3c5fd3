"""The greedy tour over centroids."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.pack.tour import greedy_tour


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.data())
def test_every_step_goes_to_the_nearest_centroid_not_yet_visited(count: int, seed: int, data: st.DataObject) -> None:
    centroids = np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)
    start = data.draw(st.integers(0, count - 1))
    tour = greedy_tour(centroids, start)
    assert tour[0] == start
    assert sorted(tour.tolist()) == list(range(count))
    unit = centroids / np.linalg.norm(centroids, axis=1, keepdims=True)
    for step in range(count - 1):
        similarities = [float(unit[tour[step]] @ unit[other]) for other in tour[step + 1 :]]
        assert similarities[0] >= max(similarities) - 1e-6


def test_neighbours_on_a_circle_follow_each_other() -> None:
    angles = np.random.default_rng(0).permutation(np.linspace(0, np.pi, 20))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    np.testing.assert_array_equal(greedy_tour(circle, int(np.argmin(angles))), np.argsort(angles))


@given(st.integers(1, 10))
def test_centroids_that_are_equal_or_zero_are_all_visited(count: int) -> None:
    for centroids in (np.zeros((count, 3), np.float32), np.ones((count, 3), np.float32)):
        assert sorted(greedy_tour(centroids, count - 1).tolist()) == list(range(count))


def test_the_input_is_left_as_it_was() -> None:
    centroids: NDArray[np.float32] = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    before = centroids.copy()
    greedy_tour(centroids, 4)
    np.testing.assert_array_equal(centroids, before)
