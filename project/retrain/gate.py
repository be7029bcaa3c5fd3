"""The gate: whether new models may replace the deployed ones, judged on the same queries, and its verdicts as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from batchwright.core.params import PARAMS_FILE, Params, load_params, read_params
from project.retrain.drift import DriftParams
from project.retrain.record import START, Since
from stages.scoring.paired import Estimate, difference, unpaired

ALL = "all"
"""The name of a comparison over all collections or all domains."""
_MOST_LINES = 60


class RetrainParams(Params):
    """Group ``retrain``: what ``batchwright retrain`` promotes. The group may be left out."""

    models: list[str] | None = None
    """The runs that are deployed, together: all of them must pass. Null means all ``runs``."""
    margin: float = Field(default=0.002, ge=0)
    """nDCG@10 that a model may lose over all queries together, compared with the deployed model in one night, or summed
    over the nights since the reference, which is the first model that was promoted or the last that a person promoted.
    Gains count in the sum only as far as they may be chance, so that those of last year pay for no loss of today."""
    most_loss: float = Field(default=0.02, ge=0)
    """nDCG@10 that a model may lose in a collection or a domain, compared with the deployed model."""
    significance: float = Field(default=0.01, gt=0, le=1)
    """A larger loss counts if its paired p value is below this."""
    baselines: list[Literal["BM25", "start"]] = ["BM25", "start"]
    """What a model must not be worse than over all queries, by more than ``margin`` and significantly: BM25, and the
    model that it started from. ``[]`` promotes models below them."""
    most_drift: float = Field(default=0.1, ge=0)
    """nDCG@10 by which the deployed model may be worse on a domain's held-out pairs of today than on those of the night
    when it was promoted. A larger, significant drop means that the data are broken, and scores on them say nothing."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """Least nDCG@10 of each model in each collection."""
    drift: DriftParams = DriftParams()
    """How far the data may be from those of the deployed night before anything is trained."""
    keep_days: float | None = Field(default=None, ge=0)
    """Each night begins by removing older data and models from DVC's cache on this machine, and older unfinished work
    from the scratch folder: those of no commit of the last so many days. What is here, deployed or a candidate stays,
    and so does all that was pushed. Not for a cache that projects share. Null removes nothing."""
    review: bool = False
    """Push what passes as the branch ``candidate``, for a person to merge and ``batchwright promote``."""


def retrain_params() -> RetrainParams:
    """Read the group ``retrain`` of ``params.yaml``, or return its defaults."""
    return load_params("retrain", RetrainParams) if "retrain" in read_params(PARAMS_FILE) else RetrainParams()


BySeed = Sequence[Mapping[str, float]]
"""nDCG@10 of each query, by id, for each seed that a model was trained with."""


class Scored(NamedTuple):
    """One model on one collection."""

    model: str
    collection: str
    domains: Mapping[str, str]
    """The domain of each query."""
    new: BySeed
    deployed: BySeed | None
    """None if no such model is deployed, or it was trained on all of the queries."""
    baselines: Mapping[str, BySeed] = {}
    """What needs no training here, by name."""
    today: bool = True
    """Whether this is a collection of today, rather than one of the night when the deployed model was promoted."""


class Verdict(NamedTuple):
    """One comparison. ``failed`` says why it lets nothing pass, and is empty if it does."""

    model: str
    collection: str
    domain: str
    queries: int
    new: float
    """The mean over seeds and queries."""
    change: Estimate | None
    failed: str
    seeds: int = 1
    """How many seeds the error of ``change`` counts."""
    over: str = "what is deployed"
    """What the model is compared with."""


def judge(scored: Sequence[Scored], limits: RetrainParams, since: Mapping[str, Since] = {}) -> list[Verdict]:
    """Compare each model with the deployed one, seed by seed: over all queries, in each collection, in each domain.

    Over all queries of today the mean may fall by ``limits.margin``, in a collection or a domain by
    ``limits.most_loss``, and by more if that is not significant. So may its changes of all nights ``since`` the
    reference, by model, and its lead over baselines. The deployed model itself must not find today's data much harder
    than those of its own night.
    """
    verdicts: list[Verdict] = []
    for model in dict.fromkeys(scores.model for scores in scored):
        of_model = [scores for scores in scored if scores.model == model]
        verdicts += _overall(model, of_model, since.get(model, START), limits)
        verdicts += [verdict for scores in of_model for verdict in _parts(scores, limits)]
        verdicts += _drifted(of_model, limits)
    return verdicts


def _overall(model: str, scored: Sequence[Scored], since: Since, limits: RetrainParams) -> Iterator[Verdict]:
    """Compare the means over the queries of all collections: with the deployed model, the reference and baselines."""
    today = [scores for scores in scored if scores.today]
    compared = [scores for scores in today if scores.deployed is not None] or today
    tonight = _compare(model, ALL, ALL, [(scores, list(scores.domains)) for scores in compared])
    verdicts = [tonight]
    if tonight.change and since.nights:
        over = f"the reference, {since.nights + 1} promotions ago"
        verdicts.append(tonight._replace(change=since.then(tonight.change).estimate(), over=over))
    for name in dict.fromkeys(name for scores in today for name in scores.baselines):
        parts = [scores._replace(deployed=list(scores.baselines[name]) * len(scores.new)) for scores in today]
        verdicts.append(_compare(model, ALL, ALL, [(part, list(part.domains)) for part in parts])._replace(over=name))
    for verdict in verdicts:
        worse = _loses(verdict.change, limits.margin, limits)
        hint = ", and retrain.baselines asks for more" if verdict.over in today[0].baselines else ""
        yield verdict._replace(failed=f"worse than {verdict.over}{hint}" if worse else "")


def _loses(change: Estimate | None, most: float, limits: RetrainParams) -> bool:
    """Whether more than ``most`` is lost, beyond chance."""
    return change is not None and -change.mean > most and change.p < limits.significance


def _parts(scored: Scored, limits: RetrainParams) -> Iterator[Verdict]:
    domains = sorted(set(scored.domains.values()))
    for domain in [ALL, *(domains if len(domains) > 1 else [])]:
        queries = [query for query, its_domain in scored.domains.items() if domain in (ALL, its_domain)]
        verdict = _compare(scored.model, scored.collection, domain, [(scored, queries)])
        yield verdict._replace(failed=_loss(verdict, limits) or _too_low(verdict, limits))


def _drifted(of_model: Sequence[Scored], limits: RetrainParams) -> Iterator[Verdict]:
    """Compare the deployed model on the held-out pairs of today with itself on those of its own night."""
    today, before = of_model[0], next((scores for scores in of_model if not scores.today), None)
    if before is None:
        return
    for domain in sorted(set(before.domains.values())):
        queries, earlier = (_of_domain(night, domain) for night in (today, before))
        if not queries or not earlier or not today.deployed or not before.deployed:
            continue
        # The same models on both nights: only the queries are others.
        now, then = _table(today.deployed, queries).mean(axis=0), _table(before.deployed, earlier).mean(axis=0)
        change = unpaired(now, then)
        if -change.mean > limits.most_drift and change.p < limits.significance:
            why = (
                f"the deployed model had {np.mean(then):.4f} on the pairs of its own night, {np.mean(now):.4f} today; "
            )
            yield _compare(today.model, today.collection, domain, [(today, queries)])._replace(
                failed=why + "look at the data"
            )


def _of_domain(scored: Scored, domain: str) -> list[str]:
    return [query for query, its_domain in scored.domains.items() if its_domain == domain]


def _compare(model: str, collection: str, domain: str, parts: Sequence[tuple[Scored, Sequence[str]]]) -> Verdict:
    """Compare a model with the deployed one on some queries of each of ``parts``, its scores on collections."""
    new = np.hstack([_table(scored.new, queries) for scored, queries in parts])
    old = [_table(scored.deployed, queries) for scored, queries in parts if scored.deployed is not None]
    seeds = min(len(new), len(old[0])) if old else len(new)
    change = difference(new[:seeds], np.hstack(old)[:seeds]) if old else None
    return Verdict(model, collection, domain, new.shape[1], float(new.mean()), change, "", seeds)


def _table(scores: BySeed, queries: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[of_seed[query] for query in queries] for of_seed in scores])


def _loss(verdict: Verdict, limits: RetrainParams) -> str:
    return f"loses more than {limits.most_loss:.3g}" if _loses(verdict.change, limits.most_loss, limits) else ""


def _too_low(verdict: Verdict, limits: RetrainParams) -> str:
    return f"below the floor of {limits.floor:.3g}" if verdict.domain == ALL and verdict.new < limits.floor else ""


def gained(verdicts: Sequence[Verdict], since: Mapping[str, Since], limits: RetrainParams) -> dict[str, Since]:
    """Return what each model has gained since its reference, tonight included."""
    first = {verdict.model: verdict for verdict in reversed(verdicts)}
    return {
        model: since.get(model, START).then(verdict.change).kept(limits.significance) if verdict.change else START
        for model, verdict in first.items()
    }


def describe(verdicts: Sequence[Verdict]) -> str:
    """Return a line for each comparison, what failed first."""
    lines = [_line(verdict) for verdict in sorted(verdicts, key=lambda verdict: not verdict.failed)]
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], *([f"and {more} more"] if more > 0 else [])])


def _line(verdict: Verdict) -> str:
    parts = [part for part in (verdict.collection, verdict.domain) if part != ALL]
    where = " ".join([verdict.model, "on", *(parts or ["all collections"])])
    failed = f" FAILED: {verdict.failed}" if verdict.failed else ""
    seeds = "1 seed" if verdict.seeds == 1 else f"{verdict.seeds} seeds"
    return f"{where}: nDCG@10 {verdict.new:.4f}{_change(verdict)}, {verdict.queries:,} queries, {seeds}{failed}"


def _change(verdict: Verdict) -> str:
    if verdict.change is None:
        return ", not compared with what is deployed"
    error = f" ± {verdict.change.error:.4f}" if verdict.queries > 1 else ""
    return f", {verdict.change.mean:+.4f}{error} over {verdict.over}"
