"""Pairs with vectors, with or without planted topics, and the objective of their clusters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.vectors import PairVectors
from tests.helpers import planted_vectors, topic_pairs


def pair_vectors(queries: NDArray[Any], documents: NDArray[Any]) -> PairVectors:
    """Return the vectors of pairs, given their query and document vectors, ``(N, d)`` each."""
    rows = np.arange(2 * len(queries)).reshape(2, -1)
    return PairVectors(vectors=np.concatenate([queries, documents]).astype(np.float16), rows=rows)


def planted(pairs: int, topics: int) -> tuple[PairVectors, NDArray[np.int64]]:
    """Return the vectors of pairs, and the topic of each pair."""
    queries, documents = zip(*topic_pairs(pairs, topics), strict=True)
    truth = np.array([int(query.split()[0].removeprefix("topic")) for query in queries])
    return pair_vectors(planted_vectors(list(queries)), planted_vectors(list(documents))), truth


def value(points: NDArray[np.float32], clusters: NDArray[np.int64]) -> float:
    """Sum S_q.S_d over clusters ``(k, size)`` of points [q | d], multiplying every query with every document."""
    half = points.shape[1] // 2
    found = 0.0
    for rows in clusters:
        found += float((points[rows, :half] @ points[rows, half:].T).sum(dtype=np.float64))
    return found


def objective(vectors: PairVectors, assignment: NDArray[np.int32]) -> float:
    """Contextual Document Embeddings, eq. 2: similarity of every query with every document of its cluster."""
    found = 0.0
    for cluster in np.unique(assignment):
        rows = np.flatnonzero(assignment == cluster)
        found += float((vectors.queries(rows) @ vectors.documents(rows).T).sum())
    return found
