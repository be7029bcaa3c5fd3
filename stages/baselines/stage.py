"""Score the baselines: BM25 and the models that training starts from."""

from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS, RESULTS, SCORES, START_MODELS
from stages.scoring.params import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import BM25, model_system, word_system
from stages.scoring.scores import write_scores

OUTPUT = RESULTS / "baselines.json"


def main() -> str:
    """Write ``results/baselines*`` and, query by query, ``data/scores/baselines.parquet``."""
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    systems = {f"{folder.name}, before training": model_system(folder) for folder in sorted(START_MODELS.glob("[!.]*"))}
    return write_scores(OUTPUT, SCORES / "baselines.parquet", {BM25: word_system(), **systems}, collections)
