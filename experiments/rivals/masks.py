"""What a batch masks: documents that are no negatives of a query."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.rivals.sets import Training

MARGIN = np.float32(0.05)
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
        positives = known_cells(training, rows, rows)
        np.fill_diagonal(positives, False)
        return positives

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
    width, edges = _edges(training)
    cells = training.classes[0, rows].astype(np.int64)[:, None] * width + training.classes[1, others]
    answers: NDArray[np.bool_] = edges[np.searchsorted(edges, cells).clip(max=len(edges) - 1)] == cells
    return answers


@lru_cache(maxsize=4)
def _edges(training: Training) -> tuple[int, Rows]:
    """The number of classes of documents, and all pairs of a query's and a document's class as numbers, sorted."""
    queries, documents = training.classes.astype(np.int64)
    width = int(documents.max()) + 1
    return width, np.unique(queries * width + documents)
