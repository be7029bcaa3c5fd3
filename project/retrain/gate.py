"""The gate: whether new models may replace the deployed ones, judged on the same queries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from project.retrain.params import RetrainParams
from stages.scoring.paired import Estimate, difference, unpaired

ALL = "all"

ByQuery = Mapping[str, float]
"""nDCG@10 of each query, by id."""


class Scored(NamedTuple):
    """One model on one collection."""

    model: str
    collection: str
    domains: Mapping[str, str]
    """The domain of each query."""
    new: ByQuery
    deployed: ByQuery | None
    """None if no such model is deployed."""
    today: bool = True
    """Whether this is a collection of today, rather than one of the night when the deployed model was promoted."""


class Verdict(NamedTuple):
    """One comparison. ``failed`` says why it lets nothing pass, and is empty if it does."""

    model: str
    collection: str
    domain: str
    queries: int
    new: float
    change: Estimate | None
    failed: str


def judge(scored: Sequence[Scored], gone: Sequence[str], limits: RetrainParams) -> list[Verdict]:
    """Compare each model with the deployed one: over all queries, in each collection, and in each of its domains.

    Over all queries of today the mean must not fall. In a collection or a domain it may fall by ``limits.most_loss``,
    and by more if that is not significant. The deployed model itself must not find today's data much harder than those
    of its own night. ``gone`` are the domains that had pairs then and have none today.
    """
    verdicts = []
    for model in dict.fromkeys(each.model for each in scored):
        own = [each for each in scored if each.model == model]
        verdicts += [_overall(model, own), *(verdict for each in own for verdict in _parts(each, limits))]
        verdicts += _drifted(own, limits)
    verdicts += [Verdict("", "", domain, 0, 0.0, None, "it has no pairs any more") for domain in gone]
    return verdicts


def _overall(model: str, scored: Sequence[Scored]) -> Verdict:
    """Compare the means over the queries of all collections that the deployed model was scored on."""
    today = [each for each in scored if each.today]
    compared = [each for each in today if each.deployed is not None] or today
    new = [each.new[query] for each in compared for query in each.domains]
    old = [each.deployed[query] for each in compared if each.deployed is not None for query in each.domains]
    verdict = _compare(model, ALL, ALL, new, old)
    worse = verdict.change is not None and verdict.change.mean < 0
    return verdict._replace(failed="worse than what is deployed" if worse else "")


def _parts(scored: Scored, limits: RetrainParams) -> Iterator[Verdict]:
    domains = sorted(set(scored.domains.values()))
    for domain in [ALL, *(domains if len(domains) > 1 else [])]:
        queries = [query for query, own in scored.domains.items() if domain in (ALL, own)]
        old = [] if scored.deployed is None else [scored.deployed[query] for query in queries]
        verdict = _compare(scored.model, scored.collection, domain, [scored.new[query] for query in queries], old)
        yield verdict._replace(failed=_loss(verdict, limits) or _too_low(verdict, limits))


def _drifted(own: Sequence[Scored], limits: RetrainParams) -> Iterator[Verdict]:
    """Compare the deployed model on the held-out pairs of today with itself on those of its own night."""
    before = next((each for each in own if not each.today), None)
    if before is None:
        return
    for domain in sorted(set(before.domains.values())):
        now, then = (_of_domain(each.deployed, each, domain) for each in (own[0], before))
        if not now or not then:
            continue
        change = unpaired(now, then)
        if -change.mean > limits.most_drift and change.p < limits.significance:
            why = (
                f"the deployed model had {np.mean(then):.4f} on the pairs of its own night, {np.mean(now):.4f} today; "
            )
            new = _of_domain(own[0].new, own[0], domain)
            yield _compare(own[0].model, own[0].collection, domain, new, now)._replace(failed=why + "look at the data")


def _of_domain(scores: ByQuery | None, scored: Scored, domain: str) -> list[float]:
    """A model's scores of a domain's queries, none if there is no such model."""
    return [scores[query] for query, own in scored.domains.items() if own == domain] if scores is not None else []


def _compare(model: str, collection: str, domain: str, new: Sequence[float], old: Sequence[float]) -> Verdict:
    change = difference(new, old) if old else None
    return Verdict(model, collection, domain, len(new), float(np.mean(new)), change, "")


def _loss(verdict: Verdict, limits: RetrainParams) -> str:
    change = verdict.change
    if change is None or -change.mean <= limits.most_loss or not change.p < limits.significance:
        return ""
    return f"loses more than {limits.most_loss:.3g}"


def _too_low(verdict: Verdict, limits: RetrainParams) -> str:
    return f"below the floor of {limits.floor:.3g}" if verdict.domain == ALL and verdict.new < limits.floor else ""
