"""Document scores from retrieved similarities alone, without looking up document vectors.

*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval* (arXiv 2304.01982), section 3.2.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Imputation = Literal["last", "none", "mean", "constant"]
"""How to impute the similarity between a query token and a document of which it retrieved no token.

``last``: the last similarity that the query token retrieved, which is an upper bound. ``none``: not at all; the score
is the mean over the other query tokens. ``mean``: the mean similarity that it retrieved. ``constant``: ``CONSTANT``.
"""

CONSTANT = 0.2


class Retrieved(NamedTuple):
    """What the n tokens of one query retrieved.

    ``similarities`` ``(n, k)``, best first, are valid where ``kept`` ``(n, k)`` is True. ``documents`` ``(c,)`` are the
    documents of the retrieved tokens, ascending. ``best`` ``(c, n)`` is the largest similarity that each query token
    retrieved from each document, or -inf if it retrieved none.
    """

    similarities: NDArray[np.float32]
    kept: NDArray[np.bool_]
    documents: NDArray[np.int64]
    best: NDArray[np.float32]

    @property
    def imputed_share(self) -> float:
        """The share of similarities between query tokens and documents that were not retrieved."""
        return float(np.isneginf(self.best).mean()) if self.best.size else 0.0

    def scores(self, imputation: Imputation = "last") -> NDArray[np.float32]:
        """Scores ``(c,)`` of ``documents``."""
        missing = np.isneginf(self.best)
        if imputation == "none":
            counts = (~missing).sum(axis=1).astype(np.float32)
            retrieved: NDArray[np.float32] = np.where(missing, 0, self.best).sum(axis=1) / counts
            return retrieved
        filled = np.where(missing, self.imputed(imputation), self.best)
        means: NDArray[np.float64] = filled.sum(axis=1, dtype=np.float64) / max(len(self.kept), 1)
        return means.astype(np.float32)

    def imputed(self, imputation: Imputation) -> NDArray[np.float32]:
        """The similarity that each query token imputes to documents of which it retrieved nothing, ``(n,)``."""
        counts = self.kept.sum(axis=1)
        if imputation == "constant":
            return np.full(len(counts), CONSTANT, np.float32)
        if imputation == "mean":
            sums = np.where(self.kept, self.similarities, np.float32(0)).sum(axis=1)
            means: NDArray[np.float32] = (sums / np.maximum(counts, 1)).astype(np.float32)
            return means
        if imputation == "none" or not self.kept.shape[1]:
            return np.zeros(len(counts), np.float32)
        last = np.take_along_axis(self.similarities, np.maximum(counts - 1, 0)[:, None], axis=1)[:, 0]
        return np.where(counts > 0, last, 0).astype(np.float32)


def collect(similarities: NDArray[np.float32], documents: NDArray[np.int64]) -> Retrieved:
    """Group what a query's tokens retrieved by document.

    ``similarities`` ``(n, k)`` are best first; ``documents`` ``(n, k)`` are the documents of the retrieved tokens, -1
    if there is none.
    """
    kept = documents >= 0
    candidates, places = np.unique(documents[kept], return_inverse=True)
    best = np.full((len(candidates), len(documents)), -np.inf, np.float32)
    np.maximum.at(best, (places, np.nonzero(kept)[0]), similarities[kept])
    return Retrieved(similarities, kept, candidates, best)


def xtr_operations(tokens: int, k: int, per_document: float) -> float:
    """Operations to score one query (the paper's table 1): n^2 k (r + 1).

    n is the number of query ``tokens``, ``k`` how many tokens each of them retrieves, and r the number of retrieved
    tokens ``per_document``, averaged over candidates.
    """
    return tokens**2 * k * (per_document + 1)


def colbert_operations(tokens: int, k: int, document_tokens: int, width: int) -> float:
    """Operations to score the same candidates from all their token vectors, gathered (table 1): n^2 k (2 m d + m + 1).

    m is ``document_tokens`` and d is ``width``; the others are as in ``xtr_operations``.
    """
    return tokens**2 * k * (2 * document_tokens * width + document_tokens + 1)
