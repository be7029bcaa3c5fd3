"""K-Means: when its steps stop, and the points that it runs on."""

from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.core.neighbours import EARLY_STOP, kmeans
from stages.cluster.points import joint_points
from tests.cluster.planted import planted

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
    kmeans(points, 10, iterations=200, seed=0)
    costs = trained[0][0].obj
    gains = (costs[:-1] - costs[1:]) / costs[:-1]
    assert 3 < len(costs) < 100
    assert gains[-1] < EARLY_STOP < gains[:-1].min()
    kmeans(points, 10, iterations=2, seed=0)
    assert len(trained[1][0].obj) == 2


def test_joint_points_are_queries_concatenated_with_their_documents() -> None:
    vectors, _ = planted(5, 2)
    expected = np.hstack([vectors.queries(ALL), vectors.documents(ALL)])
    np.testing.assert_array_equal(joint_points(vectors, ALL), expected)
