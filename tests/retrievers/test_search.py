"""Exact search, compared with sorting all scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.retrievers.common import dense


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


def test_no_queries_or_no_documents_give_empty_results() -> None:
    some, none = np.ones((2, 3), np.float32), np.ones((0, 3), np.float32)
    assert dense.search(none, some, 5)[0].shape == (0, 2)
    assert dense.search(some, none, 5)[0].shape == (2, 0)
