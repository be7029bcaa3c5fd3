"""The gate: whether new models may replace the deployed ones, judged on the same queries, and its verdicts as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from batchwright.core.params import PARAMS_FILE, Params, load_params, read_params
from stages.scoring.paired import Estimate, difference, unpaired

ALL = "all"
"""The name of a comparison over all collections or all domains."""
_MOST_LINES = 60


class RetrainParams(Params):
    """Group ``retrain``: what ``batchwright retrain`` promotes. The group may be left out."""

    models: list[str] | None = None
    """The runs that are deployed, together: all of them must pass. Null means all ``runs``."""
    most_loss: float = Field(default=0.02, ge=0)
    """nDCG@10 that a model may lose in a collection or a domain, compared with the deployed model on the same queries.
    Over all queries together it may lose nothing."""
    significance: float = Field(default=0.05, gt=0, le=1)
    """A larger loss in a collection or a domain counts if its paired p value is below this."""
    most_drift: float = Field(default=0.1, ge=0)
    """nDCG@10 by which the deployed model may be worse on a domain's held-out pairs of today than on those of the night
    when it was promoted. A larger, significant drop means that the data are broken, and scores on them say nothing."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """Least nDCG@10 of each model in each collection."""
    review: bool = False
    """Push what passes as the branch ``candidate``, for a person to merge and ``batchwright promote``."""


def retrain_params() -> RetrainParams:
    """Read the group ``retrain`` of ``params.yaml``, or return its defaults."""
    return load_params("retrain", RetrainParams) if "retrain" in read_params(PARAMS_FILE) else RetrainParams()


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
    for model in dict.fromkeys(scores.model for scores in scored):
        of_model = [scores for scores in scored if scores.model == model]
        verdicts += [_overall(model, of_model), *(verdict for scores in of_model for verdict in _parts(scores, limits))]
        verdicts += _drifted(of_model, limits)
    verdicts += [Verdict("", "", domain, 0, 0.0, None, "it has no pairs any more") for domain in gone]
    return verdicts


def _overall(model: str, scored: Sequence[Scored]) -> Verdict:
    """Compare the means over the queries of all collections that the deployed model was scored on."""
    today = [scores for scores in scored if scores.today]
    compared = [scores for scores in today if scores.deployed is not None] or today
    new = [scores.new[query] for scores in compared for query in scores.domains]
    old = [scores.deployed[query] for scores in compared if scores.deployed is not None for query in scores.domains]
    verdict = _compare(model, ALL, ALL, new, old)
    worse = verdict.change is not None and verdict.change.mean < 0
    return verdict._replace(failed="worse than what is deployed" if worse else "")


def _parts(scored: Scored, limits: RetrainParams) -> Iterator[Verdict]:
    domains = sorted(set(scored.domains.values()))
    for domain in [ALL, *(domains if len(domains) > 1 else [])]:
        queries = [query for query, its_domain in scored.domains.items() if domain in (ALL, its_domain)]
        old = [] if scored.deployed is None else [scored.deployed[query] for query in queries]
        verdict = _compare(scored.model, scored.collection, domain, [scored.new[query] for query in queries], old)
        yield verdict._replace(failed=_loss(verdict, limits) or _too_low(verdict, limits))


def _drifted(of_model: Sequence[Scored], limits: RetrainParams) -> Iterator[Verdict]:
    """Compare the deployed model on the held-out pairs of today with itself on those of its own night."""
    today, before = of_model[0], next((scores for scores in of_model if not scores.today), None)
    if before is None:
        return
    for domain in sorted(set(before.domains.values())):
        now, then = (_of_domain(night.deployed, night, domain) for night in (today, before))
        if not now or not then:
            continue
        change = unpaired(now, then)
        if -change.mean > limits.most_drift and change.p < limits.significance:
            why = (
                f"the deployed model had {np.mean(then):.4f} on the pairs of its own night, {np.mean(now):.4f} today; "
            )
            new = _of_domain(today.new, today, domain)
            yield _compare(today.model, today.collection, domain, new, now)._replace(failed=why + "look at the data")


def _of_domain(scores: ByQuery | None, scored: Scored, domain: str) -> list[float]:
    """A model's scores of a domain's queries, none if there is no such model."""
    if scores is None:
        return []
    return [scores[query] for query, its_domain in scored.domains.items() if its_domain == domain]


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


def describe(verdicts: Sequence[Verdict]) -> str:
    """Return a line for each comparison, what failed first."""
    lines = [_line(verdict) for verdict in sorted(verdicts, key=lambda verdict: not verdict.failed)]
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], *([f"and {more} more"] if more > 0 else [])])


def _line(verdict: Verdict) -> str:
    if not verdict.model:
        return f"domain {verdict.domain}: FAILED: {verdict.failed}"
    parts = [part for part in (verdict.collection, verdict.domain) if part != ALL]
    where = " ".join([verdict.model, "on", *(parts or ["all collections"])])
    failed = f" FAILED: {verdict.failed}" if verdict.failed else ""
    return f"{where}: nDCG@10 {verdict.new:.4f}{_change(verdict)}, {verdict.queries:,} queries{failed}"


def _change(verdict: Verdict) -> str:
    if verdict.change is None:
        return ", not deployed before"
    error = f" ± {verdict.change.error:.4f}" if verdict.queries > 1 else ""
    return f", {verdict.change.mean:+.4f}{error} over what is deployed"
