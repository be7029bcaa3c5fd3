"""Document scores out of retrieved similarities alone: no document vector is looked up.

*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval* (arXiv 2304.01982), section 3.2.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Imputation = Literal["last", "none", "mean", "constant"]
"""What stands for the similarity of a query token and a document of which it retrieved nothing: the last retrieved
one, an upper bound of it; nothing, so that a score is the mean over the other query tokens; the mean of those
retrieved; ``CONSTANT``."""

CONSTANT = 0.2


class Retrieved(NamedTuple):
    """What one query's n tokens retrieved.

    ``similarities`` ``(n, k)``, best first, are of tokens where ``kept`` ``(n, k)``. These belong to the ``documents``
    ``(c,)``, ascending; ``best`` ``(c, n)`` is the largest of each query token, -inf where it retrieved nothing.
    """

    similarities: NDArray[np.float32]
    kept: NDArray[np.bool_]
    documents: NDArray[np.int64]
    best: NDArray[np.float32]

    @property
    def imputed_share(self) -> float:
        """The share of the documents' similarities that nothing was retrieved for."""
        return float(np.isneginf(self.best).mean()) if self.best.size else 0.0

    def scores(self, imputation: Imputation = "last") -> NDArray[np.float32]:
        """Scores ``(c,)`` of the documents."""
        missing = np.isneginf(self.best)
        if imputation == "none":
            counts = (~missing).sum(axis=1).astype(np.float32)
            retrieved: NDArray[np.float32] = np.where(missing, 0, self.best).sum(axis=1) / counts
            return retrieved
        filled = np.where(missing, self.imputed(imputation), self.best)
        means: NDArray[np.float64] = filled.sum(axis=1, dtype=np.float64) / max(len(self.kept), 1)
        return means.astype(np.float32)

    def imputed(self, imputation: Imputation) -> NDArray[np.float32]:
        """What stands for a similarity that is missing, for each query token ``(n,)``."""
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
    """Gather by document what a query's tokens retrieved: ``similarities`` ``(n, k)``, best first, and whose tokens
    these are, ``documents`` ``(n, k)``; -1 is none."""
    kept = documents >= 0
    candidates, places = np.unique(documents[kept], return_inverse=True)
    best = np.full((len(candidates), len(documents)), -np.inf, np.float32)
    np.maximum.at(best, (places, np.nonzero(kept)[0]), similarities[kept])
    return Retrieved(similarities, kept, candidates, best)


def xtr_operations(tokens: int, k: int, per_document: float) -> float:
    """Operations to score one query (the paper's table 1): n^2 k (r + 1), of n query tokens that retrieve ``k`` each;
    r is how many retrieved tokens a candidate has ``per_document``."""
    return tokens**2 * k * (per_document + 1)


def colbert_operations(tokens: int, k: int, document_tokens: int, width: int) -> float:
    """Operations to score the same candidates by all of their tokens' vectors, gathered: n^2 k (2 m d + m + 1)."""
    return tokens**2 * k * (2 * document_tokens * width + document_tokens + 1)
