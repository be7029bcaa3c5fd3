"""The gate: whether new models may replace the deployed ones, judged on the same queries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from project.retrain.params import RetrainParams
from stages.scoring.paired import Estimate, difference

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


class Verdict(NamedTuple):
    """One comparison. ``failed`` says why it lets nothing pass, and is empty if it does."""

    model: str
    collection: str
    domain: str
    queries: int
    new: float
    deployed: float | None
    change: Estimate | None
    failed: str


def judge(scored: Sequence[Scored], gone: Sequence[str], limits: RetrainParams) -> list[Verdict]:
    """Compare each model with the deployed one: over all queries, in each collection, and in each of its domains.

    Over all queries the mean must not fall. In a collection or a domain it may fall by ``limits.most_loss``, and by
    more if that is not significant. ``gone`` are the domains on which deployed models were evaluated and that have no
    queries any more.
    """
    verdicts = []
    for model in dict.fromkeys(each.model for each in scored):
        own = [each for each in scored if each.model == model]
        verdicts += [_overall(model, own), *(verdict for each in own for verdict in _parts(each, limits))]
    verdicts += [Verdict("", "", domain, 0, 0.0, None, None, "it has no pairs any more") for domain in gone]
    return verdicts


def _overall(model: str, scored: Sequence[Scored]) -> Verdict:
    """Compare the means over the queries of all collections that the deployed model was scored on."""
    compared = [each for each in scored if each.deployed is not None] or scored
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


def _compare(model: str, collection: str, domain: str, new: Sequence[float], old: Sequence[float]) -> Verdict:
    mean = float(np.mean(new))
    if not old:
        return Verdict(model, collection, domain, len(new), mean, None, None, "")
    return Verdict(model, collection, domain, len(new), mean, float(np.mean(old)), difference(new, old), "")


def _loss(verdict: Verdict, limits: RetrainParams) -> str:
    change = verdict.change
    if change is None or -change.mean <= limits.most_loss or not change.p < limits.significance:
        return ""
    return f"loses more than {limits.most_loss:.3g}"


def _too_low(verdict: Verdict, limits: RetrainParams) -> str:
    return f"below the floor of {limits.floor:.3g}" if verdict.domain == ALL and verdict.new < limits.floor else ""
