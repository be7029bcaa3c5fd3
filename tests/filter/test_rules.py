"""Rules: the lowest score of a false negative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.filter.params import FilterParams
from stages.filter.rules import thresholds

SCORES = st.lists(st.floats(-1, 1, width=32), max_size=20)


def lowest(scores: list[float], **rule: float) -> list[float]:
    return thresholds(np.array(scores, np.float32), FilterParams(vectors="v", **rule)).tolist()


def test_a_margin_is_subtracted_from_the_score() -> None:
    assert lowest([0.5, -0.25], margin=0.125) == pytest.approx([0.375, -0.375], abs=1e-5)


def test_a_factor_lowers_negative_scores_as_well() -> None:
    assert lowest([0.5, -0.5, 0.0], factor=0.25) == pytest.approx([0.375, -0.625, 0], abs=1e-5)


def test_an_absolute_threshold_is_the_same_for_all_queries() -> None:
    assert lowest([0.5, -0.5], threshold=0.75) == [0.75, 0.75]


def test_a_negative_margin_asks_for_more_than_the_own_score() -> None:
    assert lowest([0.5], margin=-0.125) == pytest.approx([0.625], abs=1e-5)


def test_without_a_rule_for_scores_every_score_is_high_enough() -> None:
    assert lowest([0.5, -1.0], likeness=0.8) == [-np.inf, -np.inf]


@given(SCORES, st.floats(0, 2, width=32))
def test_relative_thresholds_are_never_above_the_score(scores: list[float], slack: float) -> None:
    own = np.array(scores, np.float32)
    for rule in ("margin", "factor"):
        assert (np.array(lowest(scores, **{rule: slack}), np.float32) <= own).all()


@pytest.mark.parametrize("rules", [{}, {"margin": 0.1, "factor": 0.1}, {"margin": 0.0, "threshold": 0.0}])
def test_exactly_one_rule_must_be_given(rules: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="give one of margin, factor and threshold, or likeness"):
        FilterParams(vectors="v", **rules)


@pytest.mark.parametrize("rule", [{"margin": 0.1}, {"factor": 0.5}, {"threshold": -1}, {"likeness": 0.1}])
def test_no_score_is_high_enough_for_a_pair_that_could_not_be_read(rule: dict[str, float]) -> None:
    own, unread = np.array([0.0, 0.5], np.float32), np.array([True, False])
    found = thresholds(own, FilterParams(vectors="v", **rule), unread)
    assert found[0] == np.inf and found[1] <= 0.5
