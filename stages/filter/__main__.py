"""``python -m stages.filter``: surrogate scores, thresholds and duplicate classes, domain by domain."""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from formats.atomic import atomic_dir
from formats.fingerprint import files_fingerprint
from formats.negatives import Negatives
from formats.pairs import domains, read_pairs
from formats.params import load_params
from formats.results import write_json
from formats.source import Source
from formats.vectors import VectorStore
from stages.entry import run
from stages.filter.classes import duplicate_classes
from stages.filter.params import FilterParams

PAIRS = Path("data/pairs")
VECTORS = Path("data/vectors")
OUTPUT = Path("data/negatives")
METRICS = Path("results/filter.json")


def main() -> str:
    """Write ``data/negatives`` and a summary a domain to ``results/filter.json``."""
    params = load_params("filter", FilterParams)
    store = VectorStore.open(VECTORS / params.vectors)
    metrics = {}
    with atomic_dir(OUTPUT) as folder:
        for domain in tqdm(domains(PAIRS), desc="filter", unit="domain", mininterval=2, delay=2):
            negatives = _judge_domain(domain, store, params.margin)
            negatives.write(folder, domain)
            metrics[domain] = _describe(negatives)
        Source(vectors=params.vectors, weights=store.weights, pairs=files_fingerprint([PAIRS])).write(folder)
    write_json(METRICS, metrics)
    pairs = sum(domain["pairs"] for domain in metrics.values())
    return f"{pairs:,} pairs of {len(metrics)} domains scored by '{params.vectors}', margin {params.margin}"


def _judge_domain(domain: str, store: VectorStore, margin: float) -> Negatives:
    pairs = read_pairs(PAIRS, domain, "train")
    queries, documents = pairs["query"].to_pylist(), pairs["document"].to_pylist()
    vectors = store.of(domain)
    scores = np.einsum("nd,nd->n", vectors.of("query", queries), vectors.of("document", documents))
    return Negatives(
        scores=scores,
        thresholds=scores - np.float32(margin),
        query_class=duplicate_classes(queries),
        document_class=duplicate_classes(documents),
    )


def _describe(negatives: Negatives) -> dict[str, float]:
    return {
        "pairs": len(negatives.scores),
        "queries": len(np.unique(negatives.query_class)),
        "documents": len(np.unique(negatives.document_class)),
        "mean_score": round(float(negatives.scores.mean()), 6) if len(negatives.scores) else 0.0,
    }


if __name__ == "__main__":
    run("filter", main)
