"""Exact nearest neighbours by blocked matrix products."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.bar import bar

_QUERIES = 1024
_DOCUMENTS = 16384


def search(
    queries: NDArray[np.float32], documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the best of ``documents`` ``(N, d)`` for each of ``queries`` ``(Q, d)``, by inner product.

    Returns indices and inner products ``(Q, min(k, N))``, best first; equal scores are ordered by index.
    """
    k = min(k, len(documents))
    indices = np.empty((len(queries), k), np.int64)
    scores = np.empty((len(queries), k), np.float32)
    for start in bar(range(0, len(queries), _QUERIES), desc="search", unit="block"):
        rows = slice(start, start + _QUERIES)
        indices[rows], scores[rows] = _search_block(queries[rows], documents, k)
    return indices, scores


def _search_block(
    queries: NDArray[np.float32], documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    indices = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0), np.float32)
    for start in range(0, len(documents), _DOCUMENTS):
        block = documents[start : start + _DOCUMENTS]
        numbers = np.broadcast_to(np.arange(start, start + len(block)), (len(queries), len(block)))
        indices = np.concatenate([indices, numbers], axis=1)
        scores = np.concatenate([scores, queries @ block.T], axis=1)
        # Columns stay in index order until the end, so that ties go to the lowest index.
        kept = keep_best(scores, k)
        indices = np.take_along_axis(indices, kept, axis=1)
        scores = np.take_along_axis(scores, kept, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1)


def keep_best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Columns ``(Q, min(k, n))`` of each row's largest scores, in column order; ties go to the first columns."""
    rows, columns = scores.shape
    if columns <= k:
        return np.broadcast_to(np.arange(columns), scores.shape)
    smallest = np.partition(scores, columns - k, axis=1)[:, columns - k, None]
    above = scores > smallest
    equal = scores == smallest
    free = k - above.sum(axis=1, keepdims=True)
    kept = above | (equal & (np.cumsum(equal, axis=1) <= free))
    return np.nonzero(kept)[1].reshape(rows, k)
