"""Stages ``baselines`` and ``evaluate``: how well systems retrieve, on held-out pairs and BEIR collections."""

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SCORES, START_MODELS
from batchwright.formats.runs import seed_folders
from stages.scoring.collection import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import BM25, model_system, word_system
from stages.scoring.scores import write_scores


def baselines() -> str:
    """Score what trained models must beat, BM25 and the models that training starts from.

    Writes ``results/baselines*`` and, query by query, ``data/scores/baselines.parquet``.
    """
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    folders = sorted(START_MODELS.glob("[!.]*"))
    systems = {f"{folder.name}, before training": [model_system(folder)] for folder in folders}
    file = RESULTS / "baselines.json"
    return write_scores(file, SCORES / "baselines.parquet", {BM25: [word_system()], **systems}, collections)


def evaluate(run: str) -> str:
    """Score the models of a run's seeds: ``results/evaluate/RUN*``, which are means over seeds.

    Writes the scores of each seed and query to ``data/scores/runs/RUN.parquet``.
    """
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    file, queries = RESULTS / "evaluate" / f"{run}.json", SCORES / "runs" / f"{run}.parquet"
    systems = {run: [model_system(folder) for folder in seed_folders(MODELS / run)]}
    return write_scores(file, queries, systems, collections)
