"""Stages ``baselines`` and ``evaluate``: how well systems retrieve, on held-out pairs and BEIR collections."""

from pathlib import Path

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SCORES, START_MODELS
from batchwright.formats.runs import seed_folders
from stages.scoring.collection import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import BM25, System, model_system, word_system
from stages.scoring.scores import write_scores


def baselines() -> str:
    """Score what trained models must beat, BM25 and the models that training starts from.

    Writes ``results/baselines*`` and, query by query, ``data/scores/baselines.parquet``.
    """
    params = load_params("evaluate", EvaluateParams)
    collections = read_collections(PAIRS, params)
    folders = sorted(START_MODELS.glob("[!.]*"))
    systems = {BM25: [word_system(params.depth)]}
    systems |= {f"{folder.name}, before training": [_model_system(folder, params)] for folder in folders}
    file = RESULTS / "baselines.json"
    return write_scores(file, SCORES / "baselines.parquet", systems, collections, params.measures)


def evaluate(run: str) -> str:
    """Score the models of a run's seeds: ``results/evaluate/RUN*``, which are means over seeds.

    Writes the scores of each seed and query to ``data/scores/runs/RUN.parquet``.
    """
    params = load_params("evaluate", EvaluateParams)
    collections = read_collections(PAIRS, params)
    file, queries = RESULTS / "evaluate" / f"{run}.json", SCORES / "runs" / f"{run}.parquet"
    systems = {run: [_model_system(folder, params) for folder in seed_folders(MODELS / run)]}
    return write_scores(file, queries, systems, collections, params.measures)


def _model_system(folder: Path, params: EvaluateParams) -> System:
    return model_system(folder, params.depth, params.tokens)
