"""Differences and their errors, against SciPy and against truths that were planted."""

import math

import numpy as np
import pytest
from scipy import stats

from batchwright.core.errors import InputError
from stages.scoring.paired import by_query, difference, estimate


def test_differences_of_one_seed_are_those_of_the_paired_t_test() -> None:
    generator = np.random.default_rng(0)
    theirs = generator.random(300)
    ours = theirs + generator.normal(0.02, 0.2, 300)
    found, expected = difference(ours, theirs), stats.ttest_rel(ours, theirs)
    assert found.mean == pytest.approx(ours.mean() - theirs.mean())
    assert found.mean / found.error == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert difference([ours], [theirs]) == found  # one seed is no draw of seeds


def test_the_p_value_is_about_that_of_all_swaps_of_the_two_systems() -> None:
    generator = np.random.default_rng(1)
    values = generator.choice([-1, -0.5, 0, 0, 0, 0.5, 1], 400) + 0.05
    swaps = stats.permutation_test(
        (values, np.zeros(400)), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=9999, rng=2
    )
    assert estimate(values).p == pytest.approx(swaps.pvalue, abs=0.02)


@pytest.mark.parametrize(
    ("seeds", "spread_of_seeds", "spread_of_queries"),
    [(5, 0.0, 0.3), (5, 0.05, 0.3), (3, 0.05, 0.0), (8, 0.0, 0.0), (2, 0.02, 0.2)],
)
def test_intervals_of_seeds_and_queries_contain_the_truth_as_often_as_they_claim(
    seeds: int, spread_of_seeds: float, spread_of_queries: float
) -> None:
    generator = np.random.default_rng(3)
    trials, queries, truth, rejected = 600, 100, 0.1, 0
    for _ in range(trials):
        own_of_seed = generator.normal(0, spread_of_seeds, (seeds, 1))
        own_of_query = generator.normal(0, spread_of_queries, queries)
        table = truth + own_of_seed + own_of_query + generator.normal(0, 0.2, (seeds, queries))
        rejected += estimate(table - truth).p < 0.05
    assert rejected / trials < 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_more_queries_do_not_make_up_for_few_seeds() -> None:
    generator = np.random.default_rng(4)
    own_of_seed = generator.normal(0, 0.1, (3, 1))
    errors = [estimate(own_of_seed + generator.normal(0, 0.1, (3, queries))).error for queries in (100, 10_000)]
    floor = float(own_of_seed.std(ddof=1)) / math.sqrt(3)
    assert errors == pytest.approx([floor, floor], rel=0.2)


def test_systems_that_never_differ_and_single_values_do_not_divide_by_zero() -> None:
    assert estimate(np.zeros(5)) == estimate(np.zeros((3, 5))) == (0, 0, 1)
    assert estimate(np.ones((3, 5))) == (1, 0, 0)
    mean, error, p = estimate([0.25])
    assert mean == 0.25 and math.isnan(error) and math.isnan(p)


def test_scores_by_query_are_put_side_by_side_and_other_queries_are_refused() -> None:
    assert by_query([{"b": 1.0, "a": 2.0}, {"a": 3.0, "b": 4.0}]).tolist() == [[2, 1], [3, 4]]
    with pytest.raises(InputError, match="different queries"):
        by_query([{"a": 1.0}, {"b": 1.0}])
