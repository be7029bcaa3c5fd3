"""Score the model of a run."""

from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS
from stages.scoring.collection import read_collections
from stages.scoring.params import EvaluateParams
from stages.scoring.retrieval import model_system
from stages.scoring.scores import summary, write_scores

OUTPUT = RESULTS / "evaluate"


def main(run: str) -> str:
    """Write the overall scores to ``results/evaluate/RUN.json`` and those of each domain to ``RUN.tsv``."""
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    return summary(write_scores(OUTPUT / f"{run}.json", {run: model_system(MODELS / run)}, collections))
