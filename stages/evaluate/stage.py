"""Score the model of a run."""

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SCORES
from stages.scoring.params import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import model_system
from stages.scoring.scores import write_scores

OUTPUT = RESULTS / "evaluate"


def main(run: str) -> str:
    """Write ``results/evaluate/RUN*`` and, query by query, ``data/scores/runs/RUN.parquet``."""
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    systems = {run: model_system(MODELS / run)}
    return write_scores(OUTPUT / f"{run}.json", SCORES / "runs" / f"{run}.parquet", systems, collections)
