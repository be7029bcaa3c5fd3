"""Exact search for the highest-scoring documents, one block of documents at a time."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.neighbours import knn
from batchwright.formats.vectors import PairVectors, blocks


def nearest(
    queries: NDArray[np.float32], vectors: PairVectors, documents: NDArray[np.int64], depth: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the scores and rows of each query's best documents, best first, ``(n, min(depth, M))`` each.

    ``queries`` is ``(n, d)``. ``documents`` ``(M,)`` are the rows whose documents are searched.
    """
    scores = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    for block in blocks(len(documents)):
        there = vectors.documents(documents[block])
        found, places = knn(queries, there, min(depth, len(there)), inner_product=True)
        scores = np.concatenate([scores, found], axis=1)
        rows = np.concatenate([rows, documents[block][places]], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        scores, rows = np.take_along_axis(scores, best, axis=1), np.take_along_axis(rows, best, axis=1)
    return scores, rows
