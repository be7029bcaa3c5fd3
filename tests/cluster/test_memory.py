"""``resident_pairs``: how many pairs are in memory at once, and what that costs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.formats.vectors import PairVectors
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from tests.cluster.planted import objective, pair_vectors, planted

RESIDENT = 60


def clustered(method: str, vectors: PairVectors, cluster_size: int, resident: int, seed: int = 0) -> NDArray[np.int32]:
    params = ClusterParams(vectors="any", cluster_size=cluster_size, iterations=5, resident_pairs=resident)
    return METHODS[method](vectors, params, seed)


@pytest.mark.parametrize("method", METHODS)
def test_no_more_pairs_than_allowed_are_read_at_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchwright.formats.vectors._BLOCK_ROWS", 50)  # real blocks are larger than this toy domain
    vectors, _ = planted(600, 12)
    watched = vectors.vectors.view(Watched)
    watched.read = []
    clustered(method, replace(vectors, vectors=watched), 10, RESIDENT)
    assert max(watched.read) <= RESIDENT
    assert sum(watched.read) >= 2 * 600, "every pair must be read nevertheless"


class Watched(np.ndarray[Any, Any]):
    """Records how many rows are read at a time."""

    read: list[int]

    def __getitem__(self, rows: Any) -> Any:
        found = np.asarray(super().__getitem__(rows))
        self.read.append(len(found))
        return found


@pytest.mark.parametrize("method", METHODS)
def test_there_may_be_more_clusters_than_pairs_in_memory(method: str) -> None:
    vectors = pair_vectors(*np.random.default_rng(0).normal(size=(2, 60, 4)))
    assignment = clustered(method, vectors, 1, 10)
    assert assignment.shape == (60,)
    assert 10 < len(np.unique(assignment)) <= 60


def test_exchanging_across_cell_borders_makes_clusters_harder(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = planted(600, 12)  # 50 pairs per topic, and 30 per cell
    swept = [objective(vectors, clustered("balanced", vectors, 10, 30, seed)) for seed in range(4)]
    monkeypatch.setattr("stages.cluster.methods.SWEEPS", 0)
    alone = [objective(vectors, clustered("balanced", vectors, 10, 30, seed)) for seed in range(4)]
    assert sum(swept) > 1.02 * sum(alone)
