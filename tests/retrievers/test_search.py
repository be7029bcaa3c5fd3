"""Exact search, compared with sorting all scores."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.retrievers.common import dense

CPU = torch.device("cpu")


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 60), st.integers(1, 70), st.integers(1, 20))
def test_search_equals_a_stable_sort_of_all_scores(seed: int, q: int, n: int, k: int, block: int) -> None:
    generator = np.random.default_rng(seed)
    queries, documents = (generator.integers(-2, 3, (rows, 3)).astype(np.float32) for rows in (q, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "_DOCUMENTS", block)
        patch.setattr(dense, "_QUERIES", 4)
        indices, scores = dense.search(queries, documents, k)
    everything = queries @ documents.T
    expected = np.argsort(-everything, axis=1, kind="stable")[:, :k]
    assert np.array_equal(indices, expected)
    assert np.array_equal(scores, np.take_along_axis(everything, expected, axis=1))


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 60), st.integers(1, 70), st.integers(1, 20), st.booleans()
)
def test_torch_finds_the_same_bits(seed: int, q: int, n: int, k: int, block: int, ties: bool) -> None:
    generator = np.random.default_rng(seed)
    draw = (lambda shape: generator.integers(-2, 3, shape)) if ties else generator.standard_normal
    queries, documents = (draw((rows, 3)).astype(np.float32) for rows in (q, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "_DOCUMENTS", block)
        found, scores = dense._search_on(CPU, queries, documents, min(k, n))
        expected, expected_scores = dense._search_block(queries, documents, min(k, n))
    assert found.dtype == np.int64 and scores.dtype == np.float32
    assert np.array_equal(found, expected) and np.array_equal(scores, expected_scores)


def test_a_gpu_searches_where_the_model_is_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    def on(device: torch.device, *given: object) -> object:
        searched.append((device.type, len(given[0])))
        return dense._search_block(*given)

    monkeypatch.setattr(dense, "_search_on", on)
    monkeypatch.setattr(dense, "_QUERIES_ON_GPU", 2)
    some = np.eye(3, dtype=np.float32)
    for device in (None, CPU, torch.device("cuda")):
        assert dense.search(some, some, 1, device)[0].tolist() == [[0], [1], [2]]
    assert searched == [("cuda", 2), ("cuda", 1)]


def test_no_queries_or_no_documents_give_empty_results() -> None:
    some, none = np.ones((2, 3), np.float32), np.ones((0, 3), np.float32)
    assert dense.search(none, some, 5)[0].shape == (0, 2)
    assert dense.search(some, none, 5)[0].shape == (2, 0)
