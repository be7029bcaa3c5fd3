"""Clusters of equal size: improving them helps, and a pair does not count as its own neighbour."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.core.grid import unit
from stages.cluster import equal
from stages.cluster.equal import equal_clusters, improve
from stages.cluster.exchange import _State, exchange_pairs
from stages.cluster.points import joint_points
from tests.cluster.planted import planted, value

Clusters = NDArray[np.int64]
SIZE = 4
APART = np.arange(2 * SIZE).reshape(2, SIZE)


def loose_topics() -> NDArray[np.float32]:
    """Two topics of four pairs; the similarity of a pair is 1 to itself, but only 0.15 to others of its topic."""
    topics = np.repeat(np.eye(2), SIZE, axis=0)
    texts = np.concatenate([np.sqrt(0.15) * topics, np.sqrt(0.85) * np.eye(2 * SIZE)], axis=1)
    return np.concatenate([texts, texts], axis=1).astype(np.float32)


def exchanged(points: NDArray[np.float32], clusters: Clusters) -> Clusters:
    return exchange_pairs(points, clusters, np.random.default_rng(0))


@pytest.mark.parametrize("better", [improve, exchanged])
def test_pairs_join_their_topic_although_each_is_most_similar_to_itself(
    better: Callable[[NDArray[np.float32], Clusters], Clusters],
) -> None:
    mixed = np.array([[0, 1, 2, 7], [4, 5, 6, 3]])
    found = better(loose_topics(), mixed)
    assert value(loose_topics(), found) > value(loose_topics(), mixed) + 1
    assert sorted(map(sorted, found.tolist())) == APART.tolist()


@given(k=st.integers(2, 5), size=st.integers(1, 6), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_gain_of_a_pair_is_what_its_move_adds_to_the_objective(k: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = unit(rng.normal(size=(k * size, 6)))
    clusters = rng.permutation(k * size).reshape(k, size)
    (gains,), (losses,) = _State(points, clusters)._gains(np.array([[0, 1]]))
    before = total(points, clusters[0], clusters[1])
    for member in range(size):
        moved = clusters[0, member]
        there = total(points, np.delete(clusters[0], member), np.append(clusters[1], moved))
        assert size * gains[member] == pytest.approx(there - before, abs=size * 1e-3)
        moved = clusters[1, member]
        gone = total(points, np.append(clusters[0], moved), np.delete(clusters[1], member))
        assert size * losses[member] == pytest.approx(before - gone, abs=size * 1e-3)


def total(points: NDArray[np.float32], *clusters: Clusters) -> float:
    return sum(value(points, cluster[None]) for cluster in clusters)


@pytest.mark.parametrize("seed", range(3))
def test_filled_clusters_are_improved(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = planted(300, 12)
    points = joint_points(vectors, slice(None))
    found = equal_clusters(points, 10, 5, np.random.default_rng(seed))
    monkeypatch.setattr(equal, "improve", lambda _, clusters, __: clusters)
    filled = equal_clusters(points, 10, 5, np.random.default_rng(seed))
    assert value(points, found) > 1.05 * value(points, filled)


def test_improving_stops_after_the_first_step_that_gains_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    fill = equal.fill

    def counting(*arguments: Any) -> NDArray[np.int64]:
        steps.append(1)
        return fill(*arguments)

    monkeypatch.setattr(equal, "fill", counting)
    assert sorted(map(sorted, improve(loose_topics(), APART).tolist())) == APART.tolist()
    assert len(steps) == 1
