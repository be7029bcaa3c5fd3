"""Stages ``baselines`` and ``evaluate``: how well systems retrieve, on held-out pairs and BEIR collections."""

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SCORES, START_MODELS
from stages.scoring.collection import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import BM25, model_system, word_system
from stages.scoring.scores import write_scores


def baselines() -> str:
    """Score what trained models must beat, BM25 and the models that training starts from.

    Writes ``results/baselines*`` and, query by query, ``data/scores/baselines.parquet``.
    """
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    systems = {f"{folder.name}, before training": model_system(folder) for folder in sorted(START_MODELS.glob("[!.]*"))}
    file = RESULTS / "baselines.json"
    return write_scores(file, SCORES / "baselines.parquet", {BM25: word_system(), **systems}, collections)


def evaluate(run: str) -> str:
    """Score the model of a run: ``results/evaluate/RUN*`` and, query by query, ``data/scores/runs/RUN.parquet``."""
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    file, queries = RESULTS / "evaluate" / f"{run}.json", SCORES / "runs" / f"{run}.parquet"
    return write_scores(file, queries, {run: model_system(MODELS / run)}, collections)
