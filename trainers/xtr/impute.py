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


class Scored(NamedTuple):
    """``documents`` ``(c,)``, ascending, and their ``scores`` ``(c,)``; ``share`` of the similarities of them and the
    query's tokens was imputed."""

    documents: NDArray[np.int64]
    scores: NDArray[np.float32]
    share: float


def score_retrieved(
    similarities: NDArray[np.float32], documents: NDArray[np.int64], imputation: Imputation = "last"
) -> Scored:
    """Score the documents of which a token was retrieved.

    ``similarities`` ``(n, k)`` are those of the tokens that each of a query's n tokens retrieved, best first, and
    ``documents`` ``(n, k)`` whose they are; -1 is none.
    """
    kept = documents >= 0
    if not kept.any():
        return Scored(np.empty(0, np.int64), np.empty(0, np.float32), 0.0)
    candidates, places = np.unique(documents[kept], return_inverse=True)
    best = np.full((len(candidates), len(documents)), -np.inf, np.float32)
    np.maximum.at(best, (places, np.nonzero(kept)[0]), similarities[kept])
    missing = np.isneginf(best)
    share = float(missing.mean())
    if imputation == "none":
        counts = (~missing).sum(axis=1).astype(np.float32)
        return Scored(candidates, np.where(missing, 0, best).sum(axis=1) / counts, share)
    filled = np.where(missing, missing_scores(similarities, kept, imputation), best)
    return Scored(candidates, filled.mean(axis=1, dtype=np.float64).astype(np.float32), share)


def missing_scores(
    similarities: NDArray[np.float32], kept: NDArray[np.bool_], imputation: Imputation
) -> NDArray[np.float32]:
    """What is imputed for each query token ``(n,)``."""
    counts = kept.sum(axis=1)
    if imputation == "constant":
        return np.full(len(counts), CONSTANT, np.float32)
    if imputation == "mean":
        means: NDArray[np.float32] = np.where(kept, similarities, np.float32(0)).sum(axis=1) / np.maximum(counts, 1)
        return means.astype(np.float32)
    if not similarities.shape[1]:
        return np.zeros(len(counts), np.float32)
    last = np.take_along_axis(similarities, np.maximum(counts - 1, 0)[:, None], axis=1)[:, 0]
    return np.where(counts > 0, last, 0).astype(np.float32)


def xtr_operations(tokens: int, k: int, per_document: float) -> float:
    """Operations to score one query (the paper's table 1): n^2 k (r + 1), of n query tokens that retrieve ``k`` each;
    r is how many retrieved tokens a candidate has ``per_document``."""
    return tokens**2 * k * (per_document + 1)


def colbert_operations(tokens: int, k: int, document_tokens: int, width: int) -> float:
    """Operations to score the same candidates by all of their tokens' vectors, gathered: n^2 k (2 m d + m + 1)."""
    return tokens**2 * k * (2 * document_tokens * width + document_tokens + 1)
