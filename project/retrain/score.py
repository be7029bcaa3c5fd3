"""Scores of the new models and the deployed ones, on today's collections."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import yaml

from batchwright.core.errors import InputError
from batchwright.core.normal_form import normal_forms
from batchwright.core.params import Base, load_params
from batchwright.core.paths import MODELS, PAIRS, SCORES, START_MODELS
from batchwright.formats.query_scores import MEASURES, BySeed, read_query_scores
from batchwright.formats.runs import Run, seed_folders
from project.retrain.gate import Scored
from project.retrain.repository import copy_of, locked
from stages.scoring.collection import Collection, EvaluateParams, has_split, held_out, score_queries, trained_forms
from stages.scoring.read import HELD_OUT, read_collections
from stages.scoring.retrieval import BM25, model_system

BEFORE = "held_out_before"
"""The collection of held-out pairs on which the deployed model was evaluated."""


def score(runs: Mapping[str, Run], deployed: str | None, over: Sequence[str]) -> tuple[list[Scored], list[str]]:
    """Return the scores of the models of ``runs``, of those with the same names in the commit ``deployed``, and of
    their baselines ``over``: ``BM25`` and ``start``; and what there is to say about them.

    The deployed ones are scored again, on the queries and documents of today. Both are scored on the held-out pairs of
    the deployed commit as well: if today's data are broken, so are the queries made of them, and only those of before
    tell. Queries that one of the two was trained on, since the split has changed in between, are left out.
    """
    params, language = load_params("evaluate", EvaluateParams), load_params("base", Base).language
    there = set() if deployed is None else _outputs(deployed)
    collections = {each.name: (each, _domains(each)) for each in read_collections(PAIRS, params, language)}
    notes: list[str] = []
    before = None
    if deployed and str(PAIRS) in there:
        before = _with_those_before(copy_of(PAIRS, deployed), params, collections, notes)
    scored = []
    baselines = read_query_scores(SCORES / "baselines.parquet", made_by="baselines") if over else {}
    for model, run in runs.items():
        if "start" in over and not _is_untrained(run):
            baselines |= _read(PurePath(run.start).name)
        new = _read(model)
        old = copy_of(MODELS / model, deployed) if deployed and str(MODELS / model) in there else None
        for name, (collection, compared) in collections.items():
            scores = _scores(old, collection, params) if old and compared else None
            beside = {each: baselines[name, each] for each in _references(run, over)}
            scored.append(Scored(model, name, compared or _domains(collection), new[name, model], scores, beside))
        if old and before:
            collection, compared = before
            again, deployed_then = (_scores(folder, collection, params) for folder in (MODELS / model, old))
            scored.append(Scored(model, BEFORE, compared, again, deployed_then, today=False))
    return scored, notes


Queries = tuple[Collection, dict[str, str]]
"""A collection, and the domains of those of its queries that are compared."""


def _with_those_before(
    pairs: Path, params: EvaluateParams, collections: dict[str, Queries], notes: list[str]
) -> Queries | None:
    """Return the held-out pairs of the deployed commit, and leave out queries here and there that were trained on."""
    try:
        earlier = _held_out_before(pairs, params, next(iter(collections.values()))[0])
        if HELD_OUT in collections:
            today, every = collections[HELD_OUT]
            collections[HELD_OUT] = today, not_trained_on(today, pairs)
            notes += _note(HELD_OUT, every, collections[HELD_OUT][1], "what is deployed was")
    except InputError as error:  # another version wrote them
        notes.append(f"nothing was compared on the pairs of what is deployed: {error}")
        return None
    if earlier is None:
        return None
    left = not_trained_on(earlier, PAIRS)
    notes += _note(BEFORE, _domains(earlier), left, "the new models were")
    return (earlier, left) if left else None


def not_trained_on(collection: Collection, pairs: Path) -> dict[str, str]:
    """Return the domains of the queries that are no training queries of ``pairs``, however they are written there."""
    forms = normal_forms([query.text for query in collection.queries])
    trained = trained_forms(pairs, set(forms))
    return {
        query.id: query.domain for query, form in zip(collection.queries, forms, strict=True) if form not in trained
    }


def _note(name: str, every: Mapping[str, str], left: Mapping[str, str], whose: str) -> list[str]:
    gone = len(every) - len(left)
    return [f"{gone:,} of {len(every):,} queries of {name} are left out: {whose} trained on them"] if gone else []


def _read(model: str) -> dict[tuple[str, str], BySeed]:
    return read_query_scores(SCORES / "runs" / f"{model}.parquet", made_by="evaluate")


def _is_untrained(run: Run) -> bool:
    return PurePath(run.start).parent == START_MODELS


def _references(run: Run, over: Sequence[str]) -> list[str]:
    """Return the systems that ``over`` means for a run, as their scores name them."""
    start = PurePath(run.start).name
    names = {"BM25": BM25, "start": f"{start}, before training" if _is_untrained(run) else start}
    return [names[each] for each in over]


def _held_out_before(pairs: Path, params: EvaluateParams, today: Collection) -> Collection | None:
    """Return the held-out pairs of before, or None if there were none, or just those of today."""
    if not has_split(pairs, "test"):
        return None
    collection = replace(held_out(pairs, params.held_out), name=BEFORE)
    return None if replace(collection, name=today.name) == today else collection


def _domains(collection: Collection) -> dict[str, str]:
    return {query.id: query.domain for query in collection.queries}


def _outputs(commit: str) -> set[str]:
    """Return the paths of what a commit's stages wrote."""
    stages = yaml.safe_load(locked(commit) or "{}").get("stages", {})
    return {out["path"] for stage in stages.values() for out in stage.get("outs", [])}


def _scores(folder: Path, collection: Collection, params: EvaluateParams) -> BySeed:
    """Score the models of all seeds in ``folder``."""
    systems = [model_system(each, params) for each in seed_folders(folder)]
    scored = [score_queries(collection, rank(collection)) for rank in systems]
    return [{query: measures[MEASURES[0]] for query, measures in of_seed.items()} for of_seed in scored]
