"""Metrics, checked against values worked out by hand."""

from dataclasses import replace
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.scoring.collection import Collection, EvaluateParams, Text, average, score_queries


def collection(relevant: dict[str, dict[str, int]], documents: int = 150) -> Collection:
    return Collection(
        name="tests",
        queries=[Text(id=key, text=key, domain="tests") for key in relevant],
        documents=[Text(id=f"d{number}", text="", domain="tests") for number in range(documents)],
        relevant=relevant,
    )


def test_graded_relevance_and_ranks_count_as_defined() -> None:
    relevant = {"first": {"d3": 1}, "graded": {"d1": 2, "d2": 1}, "missed": {"d149": 1}, "late": {"d10": 1, "d50": 1}}
    ranking = np.tile(np.arange(100), (4, 1))
    ranking[0, [0, 3]] = [3, 0]
    scored = score_queries(collection(relevant), ranking)
    assert scored["first"] == {"ndcg@10": 1.0, "mrr@10": 1.0, "recall@100": 1.0}
    assert scored["graded"]["ndcg@10"] == pytest.approx((2 / log2(3) + 1 / log2(4)) / (2 / log2(2) + 1 / log2(3)))
    assert scored["graded"]["mrr@10"] == 0.5
    assert scored["missed"] == {"ndcg@10": 0.0, "mrr@10": 0.0, "recall@100": 0.0}
    assert scored["late"] == {"ndcg@10": 0.0, "mrr@10": 0.0, "recall@100": 1.0}
    assert average(scored, scored)["mrr@10"] == 0.375
    assert average(scored, ["first", "missed"]) == {"ndcg@10": 0.5, "mrr@10": 0.5, "recall@100": 0.5}


def test_other_measures_count_as_deep_as_they_say() -> None:
    relevant = {"q": {"d1": 1, "d3": 1}, "late": {"d5": 1}}
    more = ["ndcg@2", "mrr@6", "recall@2", "hit_rate@1", "hit_rate@2", "map@4", "precision@4", "ndcg@10"]
    scored = score_queries(collection(relevant), np.tile(np.arange(8), (2, 1)), more)
    ndcg = (1 / log2(3)) / (1 + 1 / log2(3))
    expected = [ndcg, 1 / 2, 1 / 2, 0, 1, (1 / 2 + 2 / 4) / 2, 2 / 4]
    assert [scored["q"][name] for name in more[:-1]] == pytest.approx(expected)
    assert [scored["late"][name] for name in more[:-1]] == pytest.approx([0, 1 / 6, 0, 0, 0, 0, 0])
    assert list(scored["q"]) == ["ndcg@10", "mrr@10", "recall@100", *more[:-1]]


def test_answers_count_where_a_document_contains_one_word_for_word() -> None:
    texts = ["art in Paris.", "the sea", "Mount  ETNA, Sicily", "\u5317\u4eac\u662f\u9996\u90fd"]
    asked = {"etna": ["Vesuvius", "mount Etna"], "art": ["ar", "se"], "capital": ["\u9996\u90fd"]}
    made = replace(
        collection({key: {"d0": 1} for key in asked}),
        documents=[Text(id=f"d{number}", text=text, domain="tests") for number, text in enumerate(texts)],
        answers=asked,
    )
    scored = score_queries(made, np.tile(np.arange(4), (3, 1)), ["answers@2", "answers@3", "answers@4"])
    assert [[scored[key][f"answers@{depth}"] for depth in (2, 3, 4)] for key in asked] == [
        [0, 1, 1],
        [0, 0, 0],
        [0, 0, 1],
    ]
    assert (
        "answers@2" not in score_queries(replace(made, answers={}), np.tile(np.arange(4), (3, 1)), ["answers@2"])["art"]
    )


def test_measures_are_named_in_any_case_and_have_a_depth() -> None:
    params = EvaluateParams.model_validate({"measures": ["nDCG@5", "Recall@1000"]})
    assert (params.measures, params.depth, EvaluateParams().depth) == (["ndcg@5", "recall@1000"], 1000, 100)
    for wrong, message in (
        ("hitrate@5", "unknown measure 'hitrate@5'; did you mean 'hit_rate'"),
        ("map", "'map': say how many documents count, such as map@10"),
        ("ndcg@99999999999999999999", "say how many documents count, such as ndcg@10, and at most 1,000,000"),
        ("map@0", "say how many"),
        ("map@x", "say how many"),
    ):
        with pytest.raises(ValidationError, match=message):
            EvaluateParams.model_validate({"measures": [wrong]})


def test_a_missing_document_is_not_a_hit() -> None:
    relevant = {"none": {"d149": 1}, "last": {"d149": 1}}
    scored = score_queries(collection(relevant), np.array([[-1, -1], [149, -1]]))
    assert scored["none"] == {"ndcg@10": 0.0, "mrr@10": 0.0, "recall@100": 0.0}
    assert scored["last"] == {"ndcg@10": 1.0, "mrr@10": 1.0, "recall@100": 1.0}


@given(st.permutations(range(30)), st.sets(st.integers(0, 29), min_size=1))
def test_binary_metrics_equal_their_formulas(ranking: list[int], wanted: set[int]) -> None:
    relevant = {"q": {f"d{number}": 1 for number in wanted}}
    scored = score_queries(collection(relevant, documents=30), np.array([ranking[:20]]))["q"]
    hits = [place for place, document in enumerate(ranking[:20]) if document in wanted]
    ideal = sum(1 / log2(place + 2) for place in range(min(len(wanted), 10)))
    gained = sum(1 / log2(place + 2) for place in hits if place < 10)
    assert scored["ndcg@10"] == pytest.approx(gained / ideal)
    assert scored["mrr@10"] == pytest.approx(1 / (hits[0] + 1) if hits and hits[0] < 10 else 0)
    assert scored["recall@100"] == pytest.approx(len(hits) / len(wanted))
