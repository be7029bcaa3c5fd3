"""Scores of the new models and the deployed ones, on today's collections."""

import json
import shutil
from pathlib import Path

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SCORES
from batchwright.core.results import read_json
from batchwright.core.runtime import scratch
from batchwright.formats.query_scores import MEASURES, read_query_scores
from project.retrain.gate import ByQuery, Scored
from project.retrain.repository import locked
from project.retrain.tools import dvc, git
from stages.scoring.collection import Collection
from stages.scoring.measures import score_queries
from stages.scoring.params import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import model_system

INGESTED = RESULTS / "ingest.json"


def score(models: list[str], deployed: str | None) -> list[Scored]:
    """Return the scores of ``models``, and of those with the same names in the commit ``deployed``.

    The deployed ones are scored again: queries and documents are those of today, the same for both.
    """
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    there = [] if deployed is None else _models(deployed)
    found = []
    for model in models:
        new = read_query_scores(SCORES / "runs" / f"{model}.parquet", made_by="evaluate")
        old = _fetch(model, deployed) if deployed and model in there else None
        for collection in collections:
            domains = {query.id: query.domain for query in collection.queries}
            before = _scores(old, collection) if old else None
            found.append(Scored(model, collection.name, domains, new[collection.name, model], before))
    return found


def gone(deployed: str | None) -> list[str]:
    """Return the domains that the commit ``deployed`` had pairs of and that have none today."""
    if deployed is None or not git("ls-tree", "--name-only", deployed, "--", str(INGESTED)):
        return []
    before = json.loads(git("show", f"{deployed}:./{INGESTED}"))["domains"]
    return sorted(before.keys() - read_json(INGESTED, made_by="ingest")["domains"].keys())


def _models(commit: str) -> set[str]:
    """Return the names of a commit's trained models."""
    lines = (locked(commit) or "").splitlines()
    return {line.rpartition("/")[2] for line in lines if line.strip().startswith(f"- path: {MODELS}/")}


def _fetch(model: str, commit: str) -> Path:
    """Return the folder of a commit's model, out of DVC's cache or remote."""
    folder = scratch("retrain") / "deployed"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    dvc("get", "--quiet", ".", f"{MODELS}/{model}", "--rev", commit, "--out", str(folder / model))
    return folder / model


def _scores(folder: Path, collection: Collection) -> ByQuery:
    scored = score_queries(collection, model_system(folder)(collection))
    return {query: measures[MEASURES[0]] for query, measures in scored.items()}
