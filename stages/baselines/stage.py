"""Score the baselines: BM25 and the models that training starts from."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS, RESULTS, START_MODELS
from stages.baselines import bm25
from stages.scoring.collection import Collection, read_collections
from stages.scoring.measures import DEPTH
from stages.scoring.params import EvaluateParams
from stages.scoring.retrieval import model_system
from stages.scoring.scores import summary, write_scores

OUTPUT = RESULTS / "baselines.json"


def main() -> str:
    """Write the overall scores to ``results/baselines.json`` and those of each domain to ``results/baselines.tsv``."""
    collections = read_collections(PAIRS, load_params("evaluate", EvaluateParams))
    systems = {f"{folder.name}, before training": model_system(folder) for folder in sorted(START_MODELS.glob("[!.]*"))}
    return summary(write_scores(OUTPUT, {"BM25": _rank_by_words, **systems}, collections))


def _rank_by_words(collection: Collection) -> NDArray[np.int64]:
    documents = [document.text for document in collection.documents]
    return bm25.retrieve([query.text for query in collection.queries], documents, DEPTH)[0]
