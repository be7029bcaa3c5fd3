"""Document scores from retrieved tokens, compared with the definition and the paper's operation counts."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.retrievers.xtr.rank import CONSTANT, Imputation, colbert_operations, collect, xtr_operations

Grid = NDArray[np.float32]


def retrieved(seed: int, k: int, documents: int = 6, tokens: int = 3) -> tuple[Grid, NDArray[np.int64], Grid]:
    """What three query tokens retrieve from ``tokens`` tokens per document, and all similarities.

    Returns similarities ``(3, k)``, their documents ``(3, k)``, and the grid ``(3, documents, tokens)``.
    """
    grid = np.random.default_rng(seed).uniform(-1, 1, (3, documents, tokens)).astype(np.float32)
    flat = grid.reshape(3, -1)
    best = np.argsort(-flat, axis=1)[:, :k]
    return np.take_along_axis(flat, best, axis=1), best // tokens, grid


def by_definition(similarities: Grid, documents: NDArray[np.int64], imputation: Imputation) -> dict[int, float]:
    """Scores by the definition in section 3.2, document by document."""
    scores = {}
    for document in set(documents.flatten().tolist()) - {-1}:
        terms = []
        for row, owners in zip(similarities.tolist(), documents.tolist(), strict=True):
            found = [value for value, owner in zip(row, owners, strict=True) if owner == document]
            there = [value for value, owner in zip(row, owners, strict=True) if owner >= 0]
            if found:
                terms.append(max(found))
            elif imputation == "last":
                terms.append(there[-1] if there else 0.0)
            elif imputation == "mean":
                terms.append(sum(there) / len(there) if there else 0.0)
            elif imputation == "constant":
                terms.append(CONSTANT)
        scores[document] = sum(terms) / len(terms)
    return scores


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 18),
    lost=st.integers(0, 3),
    imputation=st.sampled_from(["last", "none", "mean", "constant"]),
)
def test_scores_match_the_definition(seed: int, k: int, lost: int, imputation: Imputation) -> None:
    similarities, documents, _ = retrieved(seed, k)
    documents[seed % 3, max(k - lost, 0) :] = -1  # an approximate index finds fewer
    found = collect(similarities, documents)
    expected = by_definition(similarities, documents, imputation)
    assert found.documents.tolist() == sorted(expected)
    assert found.scores(imputation) == pytest.approx([expected[each] for each in sorted(expected)], abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_imputing_the_last_score_bounds_the_mean_of_maxima_from_above_and_converges_to_it(seed: int) -> None:
    before: dict[int, float] = {}
    for k in range(1, 19):
        similarities, documents, grid = retrieved(seed, k)
        found = collect(similarities, documents)
        exact = grid.max(axis=2).mean(axis=0)
        now = dict(zip(found.documents.tolist(), found.scores().tolist(), strict=True))
        assert all(value >= exact[document] - 1e-6 for document, value in now.items())
        assert all(now[document] <= value + 1e-6 for document, value in before.items())
        before = now
    assert found.imputed_share == 0 and found.scores() == pytest.approx(exact, abs=1e-6)


def test_the_share_of_imputed_similarities_is_counted() -> None:
    similarities = np.array([[0.9, 0.8], [0.7, 0.6]], np.float32)
    found = collect(similarities, np.array([[0, 1], [1, 1]]))
    assert found.documents.tolist() == [0, 1]
    assert found.scores() == pytest.approx([(0.9 + 0.6) / 2, (0.8 + 0.7) / 2])
    assert found.imputed_share == 0.25


@pytest.mark.parametrize("imputation", get_args(Imputation))
def test_without_retrieved_tokens_there_are_no_documents(imputation: Imputation) -> None:
    for shape in ((2, 0), (0, 4), (2, 3)):
        found = collect(np.zeros(shape, np.float32), np.full(shape, -1))
        assert len(found.documents) == len(found.scores(imputation)) == 0 and found.imputed_share == 0


def test_operation_counts_match_the_paper() -> None:
    """Table 1: n = 16, k' = 100, m = 55, d = 128, r = 2.5."""
    gathered, imputed = colbert_operations(16, 100, 55, 128), xtr_operations(16, 100, 2.5)
    assert (gathered, imputed) == (361_881_600, 89_600)
    assert gathered / imputed == pytest.approx(4038.9, abs=0.1)
