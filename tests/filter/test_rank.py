"""The consistency filter and mined negatives, checked against plain loops."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.formats import vectors as store
from batchwright.formats.negatives import Negatives
from batchwright.formats.vectors import PairVectors
from stages.filter.params import FilterParams
from stages.filter.rank import judge_by_rank
from stages.filter.rules import thresholds
from stages.negatives.choice import Choice, draw_keys
from tests.filter.planted import without_duplicates

RULES = [{"margin": 0.0}, {"margin": 0.5}, {"factor": 0.25}, {"threshold": 1.0}]
WIDTH = 4


def pair_vectors(queries: np.ndarray, documents: np.ndarray) -> PairVectors:
    rows = np.arange(2 * len(queries)).reshape(2, -1)
    return PairVectors(vectors=np.concatenate([queries, documents]).astype(np.float16), rows=rows)


def planted(pairs: int, texts: int, seed: int) -> tuple[PairVectors, Negatives]:
    """Draw pairs from few queries and documents. All vectors are multiples of a half: sums are exact, ties frequent."""
    generator = np.random.default_rng(seed)
    queries, documents = generator.integers(-2, 3, size=(2, texts, WIDTH)) / 2
    query_class, document_class = generator.integers(texts, size=(2, pairs)).astype(np.int32)
    query_class, document_class = (
        np.unique(side, return_inverse=True)[1].astype(np.int32) for side in (query_class, document_class)
    )
    vectors = pair_vectors(queries[query_class], documents[document_class])
    scores = vectors.scores()
    return vectors, Negatives(
        scores=scores,
        thresholds=scores,
        query_class=query_class,
        document_class=document_class,
        dropped=np.zeros(pairs, np.uint8),
        mined=np.empty((pairs, 0), np.int32),
    )


def keys_of(pairs: int, seed: int = 0) -> NDArray[np.uint64]:
    return draw_keys(seed, map(str, range(pairs)))


def others(vectors: PairVectors, negatives: Negatives, row: int) -> list[float]:
    """Return the scores of all document classes that are not known positives of a row's query, highest first."""
    positive = set(negatives.document_class[negatives.query_class == negatives.query_class[row]].tolist())
    query = vectors.queries(slice(None))[row]
    documents = dict(zip(negatives.document_class.tolist(), vectors.documents(slice(None)), strict=True))
    scores = [float(query @ vector) for name, vector in documents.items() if name not in positive]
    return sorted(scores, reverse=True)


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_a_pair_is_kept_if_fewer_than_k_other_documents_score_higher(pairs: int, texts: int, k: int, seed: int) -> None:
    vectors, negatives = planted(pairs, texts, seed)
    judged = judge_by_rank(vectors, negatives, FilterParams(vectors="v", margin=0, consistency=k))
    expected = [
        sum(score > negatives.scores[row] for score in others(vectors, negatives, row)) < k for row in range(pairs)
    ]
    assert judged.kept.tolist() == expected
    assert judged.mined.shape == (pairs, 0)


@settings(deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 12),
    st.builds(
        lambda count, skip, more: Choice(count=count, skip=skip, depth=count + skip + more),
        st.integers(1, 4),
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    st.sampled_from(RULES),
    st.integers(0, 2**32 - 1),
)
def test_mined_negatives_are_the_hardest_that_are_not_false_negatives(
    pairs: int, texts: int, mine: Choice, rule: dict[str, float], seed: int
) -> None:
    vectors, negatives = planted(pairs, texts, seed)
    params = FilterParams(vectors="v", mine=mine, **rule)
    negatives = replace(negatives, thresholds=thresholds(negatives.scores, params))
    judged = judge_by_rank(vectors, negatives, params)
    assert judged.kept.all()
    assert judged.mined.shape == (pairs, mine.count)
    for row, mined in enumerate(judged.mined):
        found = mined[mined >= 0]
        ranked = others(vectors, negatives, row)[mine.skip : mine.depth]
        expected = [score for score in ranked if score < negatives.thresholds[row]][: mine.count]
        scores = vectors.documents(slice(None))[found] @ vectors.queries(slice(None))[row]
        assert scores.tolist() == expected
        assert (mined[len(found) :] == -1).all()
        positive = negatives.document_class[negatives.query_class == negatives.query_class[row]]
        names = negatives.document_class[found]
        assert not np.isin(names, positive).any()
        assert len(set(names.tolist())) == len(names)


@settings(deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 12),
    st.builds(
        lambda count, skip, more, least: Choice(
            count=count, skip=skip, depth=count + skip + more, min_score=least, sample=True
        ),
        st.integers(1, 4),
        st.integers(0, 3),
        st.integers(0, 6),
        st.sampled_from([None, -0.5, 0.25]),
    ),
    st.integers(0, 2**32 - 1),
)
def test_sampled_negatives_are_a_subset_of_the_allowed_ones(pairs: int, texts: int, mine: Choice, seed: int) -> None:
    vectors, negatives = planted(pairs, texts, seed)
    params = FilterParams(vectors="v", margin=0, mine=mine)
    negatives = replace(negatives, thresholds=thresholds(negatives.scores, params))
    judged = judge_by_rank(vectors, negatives, params, keys_of(pairs, seed))
    for row, mined in enumerate(judged.mined):
        found = mined[mined >= 0]
        allowed = [
            score
            for score in others(vectors, negatives, row)[mine.skip : mine.depth]
            if score < negatives.thresholds[row] and (mine.min_score is None or score >= mine.min_score)
        ]
        assert len(found) == min(mine.count, len(allowed))
        assert (mined[len(found) :] == -1).all()
        scores = (vectors.documents(slice(None))[found] @ vectors.queries(slice(None))[row]).tolist()
        assert scores == sorted(scores, reverse=True)
        assert not Counter(scores) - Counter(allowed)
        assert len(set(negatives.document_class[found].tolist())) == len(found)


def test_sampling_takes_all_ranks_equally_often_and_follows_the_seed() -> None:
    generator = np.random.default_rng(5)
    vectors = pair_vectors(*generator.normal(size=(2, 400, 16)))
    scores = vectors.scores()
    negatives = without_duplicates(scores, scores + 99)
    everything = Choice(count=10, depth=10)
    ranked = judge_by_rank(vectors, negatives, FilterParams(vectors="v", margin=0, mine=everything)).mined
    params = FilterParams(vectors="v", margin=0, mine=Choice(count=3, depth=10, sample=True))
    first, again, other = (judge_by_rank(vectors, negatives, params, keys_of(400, seed)).mined for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    taken = (first[:, :, None] == ranked[:, None, :]).any(axis=1).mean(axis=0)
    assert taken.min() > 0.2
    assert taken.max() < 0.4


@pytest.mark.parametrize("sample", [False, True])
def test_the_size_of_blocks_does_not_change_what_is_found(sample: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    vectors = pair_vectors(*generator.normal(size=(2, 150, 16)))
    scores = vectors.scores()
    negatives = without_duplicates(scores, scores)
    params = FilterParams(vectors="v", margin=0, consistency=5, mine=Choice(count=4, depth=20, sample=sample))
    whole = judge_by_rank(vectors, negatives, params, keys_of(150))
    monkeypatch.setattr(store, "_BLOCK_ROWS", 32)
    in_blocks = judge_by_rank(vectors, negatives, params, keys_of(150))
    assert 0 < whole.kept.sum() < 150
    np.testing.assert_array_equal(in_blocks.kept, whole.kept)
    np.testing.assert_array_equal(in_blocks.mined, whole.mined)


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_if_all_vectors_are_equal_all_pairs_are_kept_and_nothing_is_mined(value: float) -> None:
    vectors = pair_vectors(*np.full((2, 40, 16), value))
    scores = vectors.scores()
    params = FilterParams(vectors="v", margin=0, consistency=1, mine=Choice(count=2, depth=10))
    negatives = without_duplicates(scores, thresholds(scores, params))
    judged = judge_by_rank(vectors, negatives, params)
    assert judged.kept.all()
    assert (judged.mined == -1).all()


def test_a_pair_with_the_wrong_document_is_dropped() -> None:
    generator = np.random.default_rng(1)
    documents = generator.normal(size=(30, 16))
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    queries = documents.copy()
    queries[[4, 9]] = documents[[9, 4]]
    vectors = pair_vectors(queries, documents)
    scores = vectors.scores()
    negatives = without_duplicates(scores, scores)
    judged = judge_by_rank(vectors, negatives, FilterParams(vectors="v", margin=0, consistency=1))
    assert np.flatnonzero(~judged.kept).tolist() == [4, 9]
