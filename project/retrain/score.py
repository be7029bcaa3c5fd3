"""Scores of the new models and the deployed ones, on today's collections."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import yaml

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, SCORES, START_MODELS
from batchwright.core.runtime import scratch
from batchwright.formats.query_scores import MEASURES, BySeed, read_query_scores
from batchwright.formats.runs import Run, seed_folders
from project.retrain.gate import Scored
from project.retrain.repository import dvc, locked
from stages.scoring.collection import Collection, EvaluateParams, has_split, held_out, score_queries
from stages.scoring.read import read_collections
from stages.scoring.retrieval import BM25, model_system

BEFORE = "held_out_before"
"""The collection of held-out pairs on which the deployed model was evaluated."""


def score(runs: Mapping[str, Run], deployed: str | None, over: Sequence[str]) -> list[Scored]:
    """Return the scores of the models of ``runs``, of those with the same names in the commit ``deployed``, and of
    their baselines ``over``: ``BM25`` and ``start``.

    The deployed ones are scored again, on the queries and documents of today. Both are scored on the held-out pairs of
    the deployed commit as well: if today's data are broken, so are the queries made of them, and only those of before
    tell.
    """
    params = load_params("evaluate", EvaluateParams)
    collections = read_collections(PAIRS, params)
    there = set() if deployed is None else _outputs(deployed)
    before = _held_out_before(deployed, params, collections[0]) if deployed and str(PAIRS) in there else None
    scored = []
    baselines = read_query_scores(SCORES / "baselines.parquet", made_by="baselines") if over else {}
    for model, run in runs.items():
        if "start" in over and not _is_untrained(run):
            baselines |= _read(PurePath(run.start).name)
        new = _read(model)
        old = _fetch(MODELS / model, deployed) if deployed and str(MODELS / model) in there else None
        for collection in collections:
            scores = _scores(old, collection, params) if old else None
            beside = {name: baselines[collection.name, name] for name in _references(run, over)}
            scored.append(
                Scored(model, collection.name, _domains(collection), new[collection.name, model], scores, beside)
            )
        if old and before:
            again = Scored(
                model,
                before.name,
                _domains(before),
                _scores(MODELS / model, before, params),
                _scores(old, before, params),
            )
            scored.append(again._replace(today=False))
    return scored


def _read(model: str) -> dict[tuple[str, str], BySeed]:
    return read_query_scores(SCORES / "runs" / f"{model}.parquet", made_by="evaluate")


def _is_untrained(run: Run) -> bool:
    return PurePath(run.start).parent == START_MODELS


def _references(run: Run, over: Sequence[str]) -> list[str]:
    """Return the systems that ``over`` means for a run, as their scores name them."""
    start = PurePath(run.start).name
    names = {"BM25": BM25, "start": f"{start}, before training" if _is_untrained(run) else start}
    return [names[each] for each in over]


def _held_out_before(commit: str, params: EvaluateParams, today: Collection) -> Collection | None:
    """Return the held-out pairs of a commit, or None if there were none, or just those of today."""
    pairs = _fetch(PAIRS, commit)
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


def _fetch(artifact: Path, commit: str) -> Path:
    """Return a copy of a commit's artifact, out of DVC's cache or remote."""
    copy = scratch("retrain") / "deployed" / artifact
    if copy.exists():
        shutil.rmtree(copy)
    copy.parent.mkdir(parents=True, exist_ok=True)
    dvc("get", ".", str(artifact), "--rev", commit, "--out", str(copy), quiet=True)
    return copy


def _scores(folder: Path, collection: Collection, params: EvaluateParams) -> BySeed:
    """Score the models of all seeds in ``folder``."""
    systems = [model_system(each, tokens=params.tokens) for each in seed_folders(folder)]
    scored = [score_queries(collection, rank(collection)) for rank in systems]
    return [{query: measures[MEASURES[0]] for query, measures in of_seed.items()} for of_seed in scored]
