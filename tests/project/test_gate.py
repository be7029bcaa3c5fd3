"""The gate of retraining, on scores that are made up."""

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from project.retrain.gate import ALL, RetrainParams, Scored, Verdict, describe, gained, judge
from project.retrain.record import START, Since

LIMITS = RetrainParams(margin=0.001, most_loss=0.02, significance=0.05, floor=0.3)
DOMAINS = {f"{domain}{number}": domain for domain, count in (("big", 200), ("small", 4)) for number in range(count)}


def scored(
    changes: Mapping[str, float], noise: float = 0.001, collection: str = "held_out", start: float = 0.7
) -> Scored:
    """A model that scores ``start`` in every query, and differs by ``changes`` in each domain."""
    rng = np.random.default_rng(0)
    deployed = dict.fromkeys(DOMAINS, start)
    new = {query: start + changes.get(domain, 0.0) + rng.normal(scale=noise) for query, domain in DOMAINS.items()}
    return Scored("m", collection, DOMAINS, [new], [deployed])


def failures(verdicts: Sequence[Verdict]) -> set[tuple[str, str]]:
    return {(verdict.collection, verdict.domain) for verdict in verdicts if verdict.failed}


def test_better_everywhere_passes() -> None:
    assert not failures(judge([scored({"big": 0.01, "small": 0.01})], LIMITS))


def test_the_same_passes() -> None:
    assert not failures(judge([scored({}, noise=0.0)], LIMITS))


def test_over_all_queries_a_loss_must_be_more_than_the_margin_and_more_than_chance() -> None:
    def loses(mean: float, noise: float) -> bool:
        return (ALL, ALL) in failures(judge([scored({"big": mean, "small": mean}, noise)], LIMITS))

    assert loses(-0.002, 0.0) and not loses(-0.0009, 0.0)
    assert loses(-0.015, 0.08) and not loses(-0.0015, 0.08)  # ± .0055


def nights(change: float, count: int, noise: float) -> list[set[tuple[str, str]]]:
    """Each night's failures, until there is one, if the same is lost or gained every night."""
    since: dict[str, Since] = {}
    found = []
    for _ in range(count):
        verdicts = judge([scored({"big": change, "small": change}, noise)], LIMITS, since)
        found.append(failures(verdicts))
        if found[-1]:
            break
        since = gained(verdicts, since, LIMITS)
    return found


def test_a_little_less_every_night_is_stopped() -> None:
    found = nights(-0.003, 30, noise=0.08)
    assert 2 < len(found) < 10 and found[-1] == {(ALL, ALL)}
    assert len(nights(0.0, 30, noise=0.08)) == 30


def test_what_was_gained_pays_for_a_loss_only_as_far_as_it_may_be_chance() -> None:
    error, change = 0.005, judge([scored({"big": 0.3, "small": 0.3})], LIMITS)[0].change
    assert change
    kept = Since(1, 0.0, error).then(change).kept(0.05)
    assert kept.nights == 2 and abs(kept.total - 1.96 * error) < 1e-4
    assert START.then(change._replace(mean=-0.3)).kept(0.05).total == -0.3


def test_the_text_says_what_the_sum_is_over() -> None:
    verdicts = judge([scored({"big": -0.003, "small": -0.003}, 0.08)], LIMITS, {"m": Since(6, -0.012, 0.005)})
    assert "over the reference, 7 promotions ago" in describe(verdicts).splitlines()[0]
    assert describe(verdicts).splitlines()[0].endswith("FAILED: worse than the reference, 7 promotions ago")


def test_a_first_model_below_bm25_fails_beyond_chance() -> None:
    first = scored({}, noise=0.1, start=0.636)._replace(deployed=None)
    best = first._replace(baselines={"BM25": [dict.fromkeys(DOMAINS, 0.727)], "s, before training": first.new})
    text = describe(judge([best], LIMITS)).splitlines()
    assert (
        "over BM25" in text[0]
        and text[0].endswith("FAILED: worse than BM25, and retrain.baselines asks for more")
        and "FAILED" not in text[1]
    )
    near = first._replace(baselines={"BM25": [dict.fromkeys(DOMAINS, 0.64)]})
    assert not failures(judge([near], LIMITS))


def test_a_domain_that_loses_much_fails_although_the_mean_gains() -> None:
    assert failures(judge([scored({"big": 0.01, "small": -0.1})], LIMITS)) == {("held_out", "small")}


def test_a_domain_may_lose_a_little() -> None:
    assert not failures(judge([scored({"big": 0.01, "small": -0.015})], LIMITS))


def test_a_loss_that_may_be_chance_passes() -> None:
    new = dict.fromkeys(DOMAINS, 0.71) | {"small0": 0.2}  # one query of four
    verdicts = judge([Scored("m", "held_out", DOMAINS, [new], [dict.fromkeys(DOMAINS, 0.7)])], LIMITS)
    [small] = [verdict for verdict in verdicts if verdict.domain == "small"]
    assert small.change and small.change.mean < -0.1 and small.change.p > 0.05
    assert not failures(verdicts)


def test_a_collection_that_loses_much_fails_although_another_gains_more() -> None:
    other = dict.fromkeys(DOMAINS, "beir")
    lost = Scored("m", "beir", other, [], [dict.fromkeys(other, 0.7)])
    lost = lost._replace(new=[{query: 0.6 + number / 1e6 for number, query in enumerate(other)}])
    verdicts = judge([scored({"big": 0.2, "small": 0.2}), lost], LIMITS)
    assert failures(verdicts) == {("beir", ALL)}
    assert len([verdict for verdict in verdicts if verdict.collection == "beir"]) == 1, "one domain is the collection"


def seeded(changes: Sequence[float], deployed: int = 3) -> Scored:
    """A model whose seeds differ from those of the deployed one by ``changes``, in all queries alike."""
    rng = np.random.default_rng(2)
    old = [{query: 0.7 + rng.normal(scale=0.01) for query in DOMAINS} for _ in range(3)]
    new = [{query: score + change for query, score in old[place].items()} for place, change in enumerate(changes)]
    return Scored("m", "held_out", DOMAINS, new, old[:deployed])


def test_seeds_are_paired_and_count_as_draws() -> None:
    alike, apart = (judge([seeded(changes)], LIMITS) for changes in ([-0.05] * 3, [-0.2, 0.15, -0.1]))
    assert ("held_out", "big") in failures(alike), "each seed loses .05 on the same queries"
    assert not failures(apart), "another seed may bring the same loss"
    assert describe(apart).splitlines()[0].endswith("queries, 3 seeds")


def test_with_other_numbers_of_seeds_those_of_both_are_compared() -> None:
    verdicts = judge([seeded([0.1, -0.2, 0.4], deployed=1)], LIMITS)
    assert {verdict.seeds for verdict in verdicts} == {1}
    assert all(verdict.change and abs(verdict.change.mean - 0.1) < 1e-9 for verdict in verdicts)
    assert not failures(verdicts)


def before(value: float, domains: Mapping[str, str] = DOMAINS) -> Scored:
    """The same model on the pairs of the night when it was deployed, on which the new one is as good."""
    rng = np.random.default_rng(1)
    scores = {query: value + rng.normal(scale=0.01) for query in domains}
    return Scored("m", "held_out_before", domains, [scores], [scores], today=False)


def test_broken_data_are_told_by_the_deployed_model() -> None:
    verdicts = judge([scored({}, start=0.4), before(0.9)], LIMITS)
    failed = [verdict for verdict in verdicts if verdict.failed.endswith("look at the data")]
    assert [verdict.domain for verdict in failed] == ["big", "small"]
    assert "the deployed model had 0.90" in describe(verdicts)
    assert not failures(judge([scored({}, noise=0.0, start=0.7), before(0.75)], LIMITS))


def test_another_domain_of_today_is_no_drift() -> None:
    assert not failures(judge([scored({}, noise=0.0), before(0.9, {"q": "other", "r": "other"})], LIMITS))


def test_losing_on_the_pairs_of_before_fails() -> None:
    old = before(0.7)
    old = old._replace(new=[{query: score - 0.1 for query, score in old.new[0].items()}])
    assert failures(judge([scored({"big": 0.1}), old], LIMITS)) == {
        ("held_out_before", domain) for domain in (ALL, "big", "small")
    }


def test_what_was_not_deployed_need_only_reach_the_floor() -> None:
    first = scored({})._replace(deployed=None)
    assert not failures(judge([first], LIMITS))
    low = scored({}, start=0.2)._replace(deployed=None)
    assert failures(judge([low], LIMITS)) == {("held_out", ALL)}


def test_each_model_must_pass() -> None:
    verdicts = judge([scored({"big": 0.1}), scored({"big": -0.1})._replace(model="n")], LIMITS)
    assert {verdict.model for verdict in verdicts if verdict.failed} == {"n"}


@given(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2))
def test_what_passes_loses_no_more_than_the_margin_or_chance(big: float, small: float) -> None:
    verdicts = judge([scored({"big": big, "small": small})], LIMITS)
    change = verdicts[0].change
    assert change and abs(change.mean - (200 * big + 4 * small) / 204) < 0.001
    assert ((ALL, ALL) in failures(verdicts)) == (change.mean < -0.001 and change.p < 0.05)


def test_failures_come_first_in_the_text() -> None:
    text = describe(judge([scored({"big": 0.01, "small": -0.1})], LIMITS))
    assert text.splitlines()[0] == (
        "m on held_out small: nDCG@10 0.5995, -0.1005 ± 0.0005 over what is deployed, 4 queries, 1 seed "
        "FAILED: loses more than 0.02"
    )
    assert "m on all collections: nDCG@10 0.7" in text
