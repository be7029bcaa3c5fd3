"""Stage ``evaluate``: how well trained models retrieve, on held-out pairs and BEIR collections."""

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SCORES
from batchwright.formats.runs import seed_folders
from stages.scoring.collection import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import model_system
from stages.scoring.scores import write_scores


def evaluate(run: str) -> str:
    """Score the models of a run's seeds: ``results/evaluate/RUN*``, which are means over seeds.

    Writes the scores of each seed and query to ``data/scores/runs/RUN.parquet``.
    """
    params = load_params("evaluate", EvaluateParams)
    collections = read_collections(PAIRS, params)
    file, queries = RESULTS / "evaluate" / f"{run}.json", SCORES / "runs" / f"{run}.parquet"
    systems = {run: [model_system(folder, params.depth, params.tokens) for folder in seed_folders(MODELS / run)]}
    return write_scores(file, queries, systems, collections, params.measures)
