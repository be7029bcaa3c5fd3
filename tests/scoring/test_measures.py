"""Metrics, checked against values worked out by hand."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.scoring.collection import Collection, Text, average, score_queries


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
