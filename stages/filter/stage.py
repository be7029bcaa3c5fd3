"""Compute each domain's scores, thresholds, duplicate classes and hard negatives."""

from pathlib import Path

import numpy as np

from batchwright.core.fingerprint import content_id, files_fingerprint
from batchwright.core.params import Base, load_params
from batchwright.core.paths import NEGATIVES, PAIRS, RESULTS, VECTORS
from batchwright.core.results import write_json
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import read_pairs
from batchwright.formats.provenance import Provenance
from batchwright.formats.vectors import VectorStore
from stages.by_domain import publish_domains
from stages.filter.classes import duplicate_classes
from stages.filter.params import FilterParams
from stages.filter.rank import judge_by_rank
from stages.filter.rules import thresholds

OUTPUT = RESULTS / "filter.json"


def main() -> str:
    """Write ``data/negatives``, and a summary of each domain to ``results/filter.json``."""
    params = load_params("filter", FilterParams)
    seed = load_params("base", Base).seed
    store = VectorStore.open(VECTORS / params.vectors)

    def work(domain: str, folder: Path) -> dict[str, float]:
        negatives = _judge_domain(domain, store, params, np.random.default_rng([seed, int(content_id(domain), 16)]))
        negatives.write(folder, domain)
        return _describe(negatives)

    source = Provenance(vectors=params.vectors, weights=store.weights, pairs=files_fingerprint([PAIRS]))
    settings = params.model_dump(), seed
    metrics = publish_domains("filter", work, source, settings, [store.description], pairs=PAIRS, output=NEGATIVES)
    write_json(OUTPUT, metrics)
    pairs = sum(domain["pairs"] for domain in metrics.values())
    dropped = sum(domain["dropped"] for domain in metrics.values())
    return f"{pairs:,} pairs of {len(metrics)} domains scored by '{params.vectors}', {dropped:,} dropped"


def _judge_domain(domain: str, store: VectorStore, params: FilterParams, rng: np.random.Generator) -> Negatives:
    pairs = read_pairs(PAIRS, domain, "train")
    vectors = store.of(domain).of_pairs(pairs)
    scores = vectors.scores()
    negatives = Negatives(
        scores=scores,
        thresholds=thresholds(scores, params),
        query_class=duplicate_classes(pairs["query"].to_pylist(), params.near_duplicates),
        document_class=duplicate_classes(pairs["document"].to_pylist(), params.near_duplicates),
        kept=np.ones(len(scores), dtype=bool),
        mined=np.empty((len(scores), 0), dtype=np.int32),
    )
    return judge_by_rank(vectors, negatives, params, rng)


def _describe(negatives: Negatives) -> dict[str, float]:
    queries, documents = np.bincount(negatives.query_class), np.bincount(negatives.document_class)
    return {
        "pairs": len(negatives),
        "queries": len(queries),
        "documents": len(documents),
        "largest_query_class": int(queries.max(initial=0)),
        "largest_document_class": int(documents.max(initial=0)),
        "mean_score": round(float(negatives.scores.mean()), 6) if len(negatives) else 0.0,
        "dropped": int(np.count_nonzero(~negatives.kept)),
        "mined": int(np.count_nonzero(negatives.mined >= 0)),
        "mined_missing": int(np.count_nonzero(negatives.mined < 0)),
    }
