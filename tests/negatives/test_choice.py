"""Which negatives are chosen, checked against a plain loop."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from stages.negatives.choice import Choice, Ranking, choose, draw_keys

QUERIES = 6


def rankings_of(seed: int, miners: int, ranks: int) -> tuple[list[Ranking], list[NDArray[np.bool_]]]:
    """Draw what miners found among 12 documents: multiples of a half as scores, so that ties are frequent."""
    generator = np.random.default_rng(seed)
    positive, wrong = generator.random((2, QUERIES, 12)) < 0.2
    found, false = [], []
    for _ in range(miners):
        scores = -np.sort(-generator.integers(-4, 5, (QUERIES, ranks)) / 2, axis=1)
        rows = np.stack([generator.permutation(12)[:ranks] for _ in range(QUERIES)])
        rows[:, ranks - generator.integers(0, 2) :] = -1
        own = np.where(generator.random(QUERIES) < 0.2, np.nan, generator.integers(-4, 5, QUERIES) / 2)
        queries = np.arange(QUERIES)[:, None]
        ranking = Ranking.of(scores.astype(np.float32), rows, positive[queries, rows], own.astype(np.float32))
        found.append(ranking)
        false.append(wrong[queries, rows])
    return found, false


def by_hand(rankings: list[Ranking], false: list[NDArray[np.bool_]], params: Choice, query: int) -> list[int]:
    """Walk down all rankings in turn."""
    refused, offered = set(), []
    for miner, (ranking, wrong) in enumerate(zip(rankings, false, strict=True)):
        own = float(ranking.own[query])
        most = [np.inf if params.max_score is None else params.max_score]
        if params.max_share is not None and not np.isnan(own):
            most.append(own * params.max_share if own >= 0 else own * (2 - params.max_share))
        rank = -1
        for place, row in enumerate(ranking.rows[query].tolist()):
            if ranking.rank[query, place] == -1:
                continue
            rank += 1
            score = float(ranking.scores[query, place])
            if rank < params.skip or score > min(most):
                refused.add(row)
            elif rank < params.depth and (params.min_score is None or score >= params.min_score):
                knows_own = params.max_share is None or not np.isnan(own)
                if knows_own and not wrong[query, place]:
                    offered.append((rank, miner, row))
    return list(dict.fromkeys(row for _, _, row in sorted(offered) if row not in refused))


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.integers(1, 10),
    st.builds(
        lambda count, skip, more, **limits: Choice(count=count, skip=skip, depth=count + skip + more, **limits),
        st.integers(1, 4),
        st.integers(0, 2),
        st.integers(0, 4),
        max_share=st.sampled_from([None, 0.5, 0.75, 1.0]),
        max_score=st.sampled_from([None, 0.5]),
        min_score=st.sampled_from([None, -1.0]),
    ),
)
def test_the_choice_is_that_of_a_loop(seed: int, miners: int, ranks: int, params: Choice) -> None:
    rankings, false = rankings_of(seed, miners, ranks)
    chosen = choose(rankings, false, params)
    sampled = choose(rankings, false, params.model_copy(update={"sample": True}), draw_keys(seed, map(str, range(6))))
    assert chosen.shape == sampled.shape == (QUERIES, params.count)
    for query in range(QUERIES):
        allowed = by_hand(rankings, false, params, query)
        expected = allowed[: params.count]
        assert chosen[query].tolist() == expected + [-1] * (params.count - len(expected))
        drawn = [row for row in sampled[query].tolist() if row >= 0]
        assert len(drawn) == len(expected)
        assert drawn == [row for row in allowed if row in drawn]  # a part of them, in the same order


def some(rankings: list[Ranking], rows: NDArray[np.int64]) -> list[Ranking]:
    return [Ranking(scores=r.scores[rows], rows=r.rows[rows], rank=r.rank[rows], own=r.own[rows]) for r in rankings]


def test_draws_depend_on_the_seed_and_the_pair_alone() -> None:
    rankings, false = rankings_of(1, 2, 10)
    params = Choice(count=2, depth=10, sample=True)
    keys = draw_keys(1, map(str, range(QUERIES)))
    order = np.array([4, 0, 5, 2])
    whole = choose(rankings, false, params, keys)
    shuffled = choose(some(rankings, order), [wrong[order] for wrong in false], params, keys[order])
    np.testing.assert_array_equal(shuffled, whole[order])
    assert (choose(rankings, false, params, draw_keys(2, map(str, range(QUERIES)))) != whole).any()


def test_a_share_of_the_own_score_leaves_out_what_scores_nearly_as_high() -> None:
    scores = np.array([[0.9, 0.77, 0.76, 0.7], [-0.1, -0.2, -0.22, -0.3]], np.float32)
    rows = np.tile(np.arange(4), (2, 1))
    ranking = Ranking.of(scores, rows, np.zeros((2, 4), bool), np.array([0.8, -0.2], np.float32))
    chosen = choose([ranking], [np.zeros((2, 4), bool)], Choice(count=4, max_share=0.95))
    assert chosen.tolist() == [[2, 3, -1, -1], [2, 3, -1, -1]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 4, "skip": 47}, "4 negatives cannot come from ranks 48 to 50"),
        ({"min_score": 0.9, "max_score": 0.1}, r"no negative scores at least 0.9 \(min_score\) and at most 0.1"),
        ({"max_share": 1.5}, "less than or equal to 1"),
        ({"depth": 1001}, "less than or equal to 1000"),
    ],
)
def test_what_no_choice_can_be_is_refused(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Choice.model_validate(given)
