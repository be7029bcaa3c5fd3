"""Stage ``evaluate``: how well trained models retrieve, on held-out pairs and BEIR collections."""

from batchwright.core.params import Base, load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS, SCORES
from batchwright.formats.runs import seed_folders
from batchwright.retrievers import ModelInfo
from stages.scoring.collection import EvaluateParams
from stages.scoring.read import read_collections
from stages.scoring.retrieval import matryoshka_system
from stages.scoring.scores import write_scores


def evaluate(run: str) -> str:
    """Score the models of a run's seeds, by vectors cut to each of their dimensions, too, if they were trained so.

    Writes ``results/evaluate/RUN*``, which are means over seeds, and the scores of each seed and query to
    ``data/scores/runs/RUN.parquet``.
    """
    params = load_params("evaluate", EvaluateParams)
    collections = read_collections(PAIRS, params, load_params("base", Base).language)
    file, queries = RESULTS / "evaluate" / f"{run}.json", SCORES / "runs" / f"{run}.parquet"
    folders = seed_folders(MODELS / run)
    systems = [matryoshka_system(folder, ModelInfo.read(folder).dimensions or (), params) for folder in folders]
    return write_scores(file, queries, {run: systems}, collections, params.measures)
