"""Retrieval metrics of a ranking, computed by ir-measures."""

from collections.abc import Iterable, Mapping

import ir_measures
import numpy as np
from ir_measures import RR, R, nDCG
from numpy.typing import NDArray

from batchwright.formats.query_scores import MEASURES as NAMES
from stages.scoring.collection import Collection

DEPTH = 100
MEASURES = dict(zip(NAMES, (nDCG @ 10, RR @ 10, R @ DEPTH), strict=True))


def score_queries(collection: Collection, indices: NDArray[np.int64]) -> dict[str, dict[str, float]]:
    """Return the measures of each query, ``{query id: {measure: value}}``.

    ``indices`` ``(Q, k)`` are the documents ranked for each query, best first; -1 is skipped.
    """
    ranking = {
        query.id: {collection.documents[index].id: float(-rank) for rank, index in enumerate(row) if index >= 0}
        for query, row in zip(collection.queries, indices.tolist(), strict=True)
    }
    names = {measure: name for name, measure in MEASURES.items()}
    scored = {query.id: dict.fromkeys(MEASURES, 0.0) for query in collection.queries}
    for value in ir_measures.iter_calc(list(names), collection.relevant, ranking):
        scored[value.query_id][names[value.measure]] = value.value
    return scored


def average(scored: Mapping[str, Mapping[str, float]], queries: Iterable[str]) -> dict[str, float]:
    """Return the mean of each measure over ``queries``."""
    chosen = [scored[query] for query in queries]
    return {name: round(sum(each[name] for each in chosen) / len(chosen), 6) for name in MEASURES}
