"""``python -m stages.evaluate VARIANT``: rankings of held-out and BEIR collections, and what they are worth."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.models import locate_model
from formats.params import load_params
from formats.results import write_json, write_tsv
from stages.entry import run
from stages.evaluate import bm25
from stages.evaluate.collection import Collection, beir, held_out, prefixed
from stages.evaluate.metrics import DEPTH, average, score_queries
from stages.evaluate.params import EvaluateParams
from trainers.params import VariantParams
from trainers.variants import Variant, load_variant

PAIRS = Path("data/pairs")
MODELS = Path("models")
RESULTS = Path("results/evaluate")

System = Callable[[Collection], NDArray[np.int64]]


def main() -> str:
    """Write ``results/evaluate/NAME``: one table of all systems, overall (JSON) and by domain (TSV).

    NAME is the variant; with ``--batches`` these come behind it, and only the model trained on them is evaluated.
    """
    parser = argparse.ArgumentParser(prog="python -m stages.evaluate")
    parser.add_argument("variant")
    parser.add_argument("--batches", metavar="ROUND", help="only the model trained on this round's batches")
    arguments = parser.parse_args()
    variant = load_variant(arguments.variant)
    params = load_params("evaluate", EvaluateParams)
    reading = load_params(f"train.{arguments.variant}", variant.Params)
    if arguments.batches:
        name = f"{arguments.variant}-{arguments.batches}"
        systems = {f"{arguments.variant}, {arguments.batches} batches": _model_system(MODELS / name, variant, reading)}
    else:
        name = arguments.variant
        systems = _systems(name, variant, reading)
    collections = [held_out(PAIRS, params.held_out), *(beir(Path(folder)) for folder in params.beir)]
    overall: dict[str, dict[str, Any]] = {}
    rows = []
    for collection in collections:
        for system, rank in systems.items():
            scored = score_queries(collection, rank(collection))
            overall.setdefault(collection.name, {})[system] = average(scored, scored)
            rows += _by_domain(collection, system, scored)
    write_json(RESULTS / f"{name}.json", overall)
    write_tsv(RESULTS / f"{name}.tsv", rows)
    return "nDCG@10 on held-out queries: " + ", ".join(
        f"{system} {values['ndcg@10']:.3f}" for system, values in overall["held_out"].items()
    )


def _systems(name: str, variant: Variant, params: VariantParams) -> dict[str, System]:
    """What is compared: BM25, the untrained model, and the model trained on random and on contextual batches."""
    folders = {
        "untrained": locate_model(params.model, params.revision),
        f"{name}, random batches": MODELS / f"{name}-random",
        f"{name}, contextual batches": MODELS / name,
    }

    def rank_by_words(collection: Collection) -> NDArray[np.int64]:
        queries = [query.text for query in collection.queries]
        return bm25.retrieve(queries, [document.text for document in collection.documents], DEPTH)[0]

    return {
        "BM25": rank_by_words,
        **{system: _model_system(folder, variant, params) for system, folder in folders.items()},
    }


def _model_system(folder: Path, variant: Variant, params: VariantParams) -> System:
    def rank(collection: Collection) -> NDArray[np.int64]:
        queries = prefixed(collection.queries, "query", params.prefixes)
        documents = prefixed(collection.documents, "document", params.prefixes)
        return variant.retrieve(folder, queries, documents, DEPTH, params.max_length)[0]

    return rank


def _by_domain(collection: Collection, system: str, scored: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    by_domain: dict[str, list[str]] = {}
    for query in collection.queries:
        by_domain.setdefault(query.domain, []).append(query.id)
    return [
        {"collection": collection.name, "domain": domain, "system": system, "queries": len(ids), **average(scored, ids)}
        for domain, ids in sorted(by_domain.items())
    ]


if __name__ == "__main__":
    run("evaluate", main)
