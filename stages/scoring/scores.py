"""Write the scores of several systems to the two files that the report reads."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.results import write_json, write_tsv
from stages.scoring.collection import Collection
from stages.scoring.measures import average, score_queries

System = Callable[[Collection], NDArray[np.int64]]
"""Ranks a collection. Returns indices of documents ``(Q, k)``, best first, padded with -1."""

Overall = dict[str, dict[str, dict[str, float]]]
"""Measures by collection and system."""


def write_scores(file: Path, systems: Mapping[str, System], collections: Sequence[Collection]) -> Overall:
    """Score every system on every collection; write averages to ``file`` (JSON) and those by domain to its TSV file."""
    overall: Overall = {}
    rows: list[dict[str, Any]] = []
    for collection in collections:
        for system, rank in systems.items():
            scored = score_queries(collection, rank(collection))
            overall.setdefault(collection.name, {})[system] = average(scored, scored)
            rows += _by_domain(collection, system, scored)
    write_json(file, overall)
    write_tsv(file.with_suffix(".tsv"), rows)
    return overall


def summary(overall: Overall) -> str:
    """Return one line with each system's nDCG@10 on the held-out queries."""
    scores = overall["held_out"].items()
    return "nDCG@10 on held-out queries: " + ", ".join(f"{name} {values['ndcg@10']:.3f}" for name, values in scores)


def _by_domain(collection: Collection, system: str, scored: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    by_domain: dict[str, list[str]] = {}
    for query in collection.queries:
        by_domain.setdefault(query.domain, []).append(query.id)
    return [
        {"collection": collection.name, "domain": domain, "system": system, "queries": len(ids), **average(scored, ids)}
        for domain, ids in sorted(by_domain.items())
    ]
