"""Exact false-negative masks of batches as packed."""

import numpy as np
from numpy.typing import NDArray

from formats.negatives import Negatives


class KnownPositives:
    """Which document classes are positives of a query class, in any row of a domain."""

    def __init__(self, negatives: Negatives) -> None:
        self._documents = np.int64(negatives.document_class.max(initial=0)) + 1
        self._edges = np.unique(self._edge(negatives.query_class, negatives.document_class))

    def among(self, query_class: NDArray[np.int32], document_class: NDArray[np.int32]) -> NDArray[np.bool_]:
        """``(B, B)``: whether document j is a known positive of query i."""
        edges = self._edge(query_class[:, None], document_class[None, :])
        nearest = np.minimum(np.searchsorted(self._edges, edges), len(self._edges) - 1)
        found: NDArray[np.bool_] = self._edges[nearest] == edges
        return found

    def _edge(self, query_class: NDArray[np.int32], document_class: NDArray[np.int32]) -> NDArray[np.int64]:
        return query_class.astype(np.int64) * self._documents + document_class


def false_negatives(
    scores: NDArray[np.float32], thresholds: NDArray[np.float32], known: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mask ``(B, B)``: documents j that must not be negatives of query i; never its own document.

    ``scores[i, j]`` is the surrogate's f(q_i, d_j), ``thresholds[i]`` what counts as positive,
    ``known[i, j]`` marks known positives. (Contextual Document Embeddings, eq. 4.)
    """
    mask: NDArray[np.bool_] = (scores >= thresholds[:, None]) | known
    np.fill_diagonal(mask, False)
    return mask
