"""Stage ``baselines``: how well systems without training here retrieve, on held-out pairs and BEIR collections."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import RootModel

from batchwright.core.params import Base, load_params
from batchwright.core.paths import PAIRS, RESULTS, SCORES, START_MODELS
from batchwright.core.terminal import warn
from stages.scoring.collection import DEPTH, Collection, EvaluateParams
from stages.scoring.read import HELD_OUT, read_collections
from stages.scoring.retrieval import BM25, model_system, word_system
from stages.scoring.scores import write_scores


class Entries(RootModel[dict[str, Any]]):
    """A group of parameters by name, whose entries other stages check."""


def main() -> str:
    """Score what trained models must beat, BM25 and the models that training starts from.

    Of ``models/start``, which may hold models of earlier parameters, those count that the parameters name. Writes
    ``results/baselines*`` and, query by query, ``data/scores/baselines.parquet``.
    """
    params = load_params("evaluate", EvaluateParams)
    language = load_params("base", Base).language
    collections = read_collections(PAIRS, params, language)
    warn("baselines", _too_few(collections, params.held_out.documents))
    names = sorted([*load_params("start_models", Entries).root, *load_params("pretrain", Entries).root])
    systems = {BM25: [word_system(params.depth, language)]}
    systems |= {f"{name}, before training": [model_system(START_MODELS / name, params)] for name in names}
    file = RESULTS / "baselines.json"
    return write_scores(file, SCORES / "baselines.parquet", systems, collections, params.measures)


def _too_few(collections: Sequence[Collection], wanted: int) -> Iterator[str]:
    """Tell of held-out documents so few that any model finds all answers."""
    for collection in collections:
        documents = len(collection.documents)
        if collection.name == HELD_OUT and documents <= DEPTH and documents < wanted:
            yield (
                f"queries search only {documents} held-out documents, so all models find most answers; "
                "raise ingest.held_out, or set evaluate.held_out.training_documents: true"
            )
