"""The greedy tour and the short tour over centroids."""

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.core.grid import unit
from stages.pack import tour as tour_module
from stages.pack.tour import greedy_tour, short_tour, two_opt


def greedy(centroids: NDArray[np.float32], start: int) -> NDArray[np.int64]:
    return greedy_tour(unit(centroids), start)


TOURS = pytest.mark.parametrize("tour", [greedy, short_tour])


@st.composite
def centroids_and_start(draw: st.DrawFn, most: int = 60) -> tuple[NDArray[np.float32], int]:
    """Draw random centroids, some of them equal and some zero, and a start."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, width = draw(st.integers(1, most)), draw(st.integers(1, 12))
    centroids = rng.normal(size=(count, width)).astype(np.float32)
    copies = rng.random(count) < draw(st.sampled_from([0.0, 0.3, 0.9]))
    centroids[copies] = centroids[rng.integers(count)]
    centroids[rng.random(count) < draw(st.sampled_from([0.0, 0.2]))] = 0
    return centroids, draw(st.integers(0, count - 1))


def topics(count: int, width: int = 16, spread: float = 0.5) -> NDArray[np.float32]:
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(max(1, count // 30), width))
    noise = spread * rng.normal(size=(count, width))
    return (centres[rng.integers(len(centres), size=count)] + noise).astype(np.float32)


def length(centroids: NDArray[np.float32], tour: NDArray[np.int64]) -> float:
    along = unit(centroids)[tour].astype(np.float64)
    return float((1 - (along[:-1] * along[1:]).sum(axis=1)).sum())


def search_in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search a few thousand points the way that many thousands are searched."""
    monkeypatch.setattr(tour_module, "EXACT_UP_TO", 300)
    monkeypatch.setattr(tour_module, "CELL_POINTS", 100)
    monkeypatch.setattr(tour_module, "CELLS_SEARCHED", 8)
    monkeypatch.setattr(tour_module, "_SEARCHED_TOGETHER", 700)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.data())
def test_every_greedy_step_goes_to_the_nearest_centroid_not_yet_visited(
    count: int, seed: int, data: st.DataObject
) -> None:
    centroids = np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)
    start = data.draw(st.integers(0, count - 1))
    tour = greedy(centroids, start)
    assert tour[0] == start
    assert sorted(tour.tolist()) == list(range(count))
    directions = unit(centroids)
    for step in range(count - 1):
        similarities = [float(directions[tour[step]] @ directions[other]) for other in tour[step + 1 :]]
        assert similarities[0] == max(similarities)


@TOURS
def test_neighbours_on_a_circle_follow_each_other(tour) -> None:
    angles = np.random.default_rng(0).permutation(np.linspace(0, np.pi, 20))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    np.testing.assert_array_equal(tour(circle, int(np.argmin(angles))), np.argsort(angles))


@TOURS
@pytest.mark.parametrize("count", [1, 2, 3, 10, 500])
def test_centroids_that_are_equal_or_zero_are_all_visited(tour, count: int) -> None:
    for centroids in (np.zeros((count, 3), np.float32), np.ones((count, 3), np.float32)):
        order = tour(centroids, count - 1)
        assert order[0] == count - 1
        assert sorted(order.tolist()) == list(range(count))


@TOURS
def test_no_centroids_make_an_empty_tour(tour) -> None:
    assert tour(np.empty((0, 3), np.float32), 0).shape == (0,)


@TOURS
def test_the_input_is_not_modified(tour) -> None:
    centroids = topics(10)
    before = centroids.copy()
    tour(centroids, 4)
    np.testing.assert_array_equal(centroids, before)


@given(centroids_and_start())
def test_the_short_tour_visits_every_centroid_once_from_its_start(case: tuple[NDArray[np.float32], int]) -> None:
    centroids, start = case
    tour = short_tour(centroids, start)
    assert tour[0] == start
    assert sorted(tour.tolist()) == list(range(len(centroids)))


@given(centroids_and_start())
def test_the_short_tour_is_never_longer_than_the_greedy_one(case: tuple[NDArray[np.float32], int]) -> None:
    centroids, start = case
    assert length(centroids, short_tour(centroids, start)) <= length(centroids, greedy(centroids, start))


def test_the_short_tour_is_shorter_even_without_improving_the_greedy_one(monkeypatch) -> None:
    monkeypatch.setattr(tour_module, "GREEDY_UP_TO", 0)
    for spread in (0.2, 0.5, 2.0):
        centroids = topics(1500, spread=spread)
        assert length(centroids, short_tour(centroids, 3)) < length(centroids, greedy(centroids, 3))


@pytest.mark.parametrize("width", [16, 15])
def test_search_in_cells_finds_a_tour_as_short_as_exact_search(width: int, monkeypatch) -> None:
    centroids = topics(3000, width)
    exact = length(centroids, short_tour(centroids, 5))
    search_in_cells(monkeypatch)
    tour = short_tour(centroids, 5)
    assert tour[0] == 5
    assert sorted(tour.tolist()) == list(range(3000))
    assert length(centroids, tour) < 1.01 * exact


def test_threads_do_not_change_the_tour(monkeypatch) -> None:
    search_in_cells(monkeypatch)
    centroids, threads = topics(3000), faiss.omp_get_max_threads()
    tours = []
    try:
        for number in (1, 2, 2):
            faiss.omp_set_num_threads(number)
            tours.append(short_tour(centroids, 0).tobytes())
    finally:
        faiss.omp_set_num_threads(threads)
    assert len(set(tours)) == 1


@pytest.mark.parametrize("noise", [0.0, 1e-5])
@pytest.mark.parametrize("in_cells", [False, True])
def test_a_clump_of_centroids_takes_few_searches(noise: float, in_cells: bool, monkeypatch) -> None:
    searches, nearest = [], tour_module.nearest

    def counted(unit: NDArray[np.float32]) -> tour_module.Neighbours:
        searches.append(len(unit))
        return nearest(unit)

    monkeypatch.setattr(tour_module, "nearest", counted)
    if in_cells:
        search_in_cells(monkeypatch)
    clump = 1 + noise * np.random.default_rng(0).normal(size=(3000, 8))
    centroids = np.concatenate([clump, topics(500, 8)]).astype(np.float32)
    assert sorted(short_tour(centroids, 0).tolist()) == list(range(3500))
    assert len(searches) < 26


def test_parts_that_run_the_wrong_way_are_reversed() -> None:
    angles = np.linspace(0, np.pi, 200)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    order = np.arange(200)
    order[30:90] = order[30:90][::-1].copy()
    order[100:103] = order[100:103][::-1].copy()
    circle = unit(circle)
    np.testing.assert_array_equal(two_opt(circle, order, tour_module.nearest(circle)), np.arange(200))
