"""Which documents of a batch are no negatives of which queries. A rule takes pairs and returns a function of rows."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.rivals.pairs import Training
from stages.filter.classes import duplicate_classes

MARGIN = np.float32(0.05)
NEAR_DUPLICATES = 0.9
Rows = NDArray[np.int64]
Mask = Callable[[Rows], NDArray[np.bool_]]
"""Takes the rows of a batch ``(B,)``; returns the mask ``(B, B)`` of documents j that are no negatives of query i."""
Rule = Callable[[Training], Mask]


def nothing(_: Training) -> Mask:
    """Mask nothing."""
    return lambda rows: np.zeros((len(rows), len(rows)), dtype=np.bool_)


def known(training: Training) -> Mask:
    """Mask known positives and duplicates, without a score."""

    def mask(rows: Rows) -> NDArray[np.bool_]:
        found = known_cells(training, rows, rows)
        np.fill_diagonal(found, False)
        return found

    return mask


def margin(training: Training) -> Mask:
    """Mask known positives, duplicates, and documents that the surrogate scores within a margin of the query's own."""
    certain = known(training)

    def mask(rows: Rows) -> NDArray[np.bool_]:
        scores = training.vectors.queries(rows) @ training.vectors.documents(rows).T
        near: NDArray[np.bool_] = scores >= scores.diagonal()[:, None] - MARGIN
        np.fill_diagonal(near, False)
        return near | certain(rows)

    return mask


RULES: dict[str, Rule] = {"nothing": nothing, "known": known, "margin": margin}


def known_cells(training: Training, rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Which documents of ``others`` ``(n,)`` are known to answer the queries of ``rows`` ``(B,)``, as ``(B, n)``.

    They are if any pair joins a duplicate of the query with a duplicate of the document.
    """
    queries, documents, width, edges = _classes(training)
    cells = queries[rows][:, None] * width + documents[others]
    found: NDArray[np.bool_] = edges[np.searchsorted(edges, cells).clip(max=len(edges) - 1)] == cells
    return found


def document_counts(training: Training) -> dict[str, int]:
    """The number of different documents of each domain."""
    documents = _classes(training)[1]
    return {name: len(np.unique(documents[rows])) for name, rows in training.by_domain().items()}


@lru_cache(maxsize=4)
def _classes(training: Training) -> tuple[Rows, Rows, int, Rows]:
    """Classes of duplicates on both sides, the number of classes of documents, and all pairs of classes, sorted."""
    queries = duplicate_classes([training.queries], NEAR_DUPLICATES).astype(np.int64)
    documents = duplicate_classes([training.documents], NEAR_DUPLICATES).astype(np.int64)
    width = int(documents.max()) + 1
    return queries, documents, width, np.unique(queries * width + documents)
