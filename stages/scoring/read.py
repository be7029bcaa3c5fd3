"""All collections that models and baselines are scored on."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.paths import RAW, check_watched
from stages.scoring.beir import beir
from stages.scoring.collection import Collection, has_split, held_out
from stages.scoring.params import EvaluateParams, RerankParams
from stages.scoring.rerank import truncate
from stages.scoring.retrieval import BM25, System, model_system, word_system

HELD_OUT = "held_out"


def read_collections(pairs: Path, params: EvaluateParams) -> list[Collection]:
    """Read the held-out pairs, if there are any, then the BEIR folders.

    Raises:
        InputError: there is nothing to evaluate on, a folder is named twice, or it lies outside ``raw/beir``.
    """
    check_watched(params.beir, RAW / "beir")
    found = [beir(Path(folder), name) for folder, name in zip(params.beir, names(params.beir), strict=True)]
    if params.rerank:
        first = _first(params.rerank)
        found = [truncate(collection, first) for collection in found]
    return found if found and not has_split(pairs, "test") else [held_out(pairs, params.held_out), *found]


def names(folders: Sequence[str]) -> list[str]:
    """Names of collections: the folders' own names, or their whole paths where these are not unique."""
    paths = [Path(folder) for folder in folders]
    if twice := [str(path) for path, count in Counter(paths).items() if count > 1]:
        raise InputError(f"evaluate.beir names '{twice[0]}' twice; remove one of the two")
    own = Counter([HELD_OUT, *(path.name for path in paths)])
    return [path.name if own[path.name] == 1 else str(path) for path in paths]


def _first(params: RerankParams) -> System:
    if params.first == BM25:
        return word_system(params.documents)
    return model_system(Path(params.first), params.documents)
