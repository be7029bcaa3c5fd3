"""Document scores from retrieved similarities alone, without looking up document vectors.

*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval* (arXiv 2304.01982), section 3.2."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.core.arguments import check_choice, check_count
from batchwright.retrievers.xtr.model import TokenVectors

if TYPE_CHECKING:
    from batchwright.retrievers.xtr.index import TokenIndex


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


TOKENS = 1000
"""Number of tokens that each query token retrieves, k'."""


def search_tokens(
    index: "TokenIndex", queries: TokenVectors, k: int, tokens: int = TOKENS, imputation: Imputation = "last"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the best ``min(k, N)`` of the index's N documents for each query: numbers and scores, ``(Q, k)`` each.

    Each query token retrieves ``tokens`` tokens, or all if the index has fewer. Equal scores are ordered by document
    number; documents of which no token was retrieved come last.

    Raises:
        InputError: ``k`` or ``tokens`` is below 1, or there is no such ``imputation``.
    """
    check_count("k", k)
    check_count("tokens", tokens)
    check_choice("imputation", imputation, Imputation)
    present = index.present
    k = min(k, len(present))
    found = [
        rank_all(collect(similarities, index.owners_of(numbers)), present, k, imputation)
        for similarities, numbers in index.retrieve(queries.vectors, queries.lengths, tokens)
    ]
    indices, scores = (np.array([each[part] for each in found]).reshape(len(found), k) for part in (0, 1))
    return indices.astype(np.int64), scores.astype(np.float32)


def rank(
    retrieved: Retrieved, k: int, imputation: Imputation = "last"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The best ``k`` documents of which a query's tokens retrieved any token, or all if there are fewer, and their
    scores."""
    scores = retrieved.scores(imputation)
    best = np.argsort(-scores, kind="stable")[:k]
    return retrieved.documents[best], scores[best]


def rank_all(
    retrieved: Retrieved, present: NDArray[np.int64], k: int, imputation: Imputation = "last"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """``rank``, then fill up to ``k`` with other ``present`` documents, scored by imputed similarities alone."""
    documents, scores = rank(retrieved, k, imputation)
    others = np.setdiff1d(present[:k], retrieved.documents)[: k - len(documents)]
    nothing = float(retrieved.imputed(imputation).sum()) / max(len(retrieved.kept), 1)
    rest = min(nothing, float(scores.min(initial=np.inf)))
    return np.concatenate([documents, others]), np.concatenate([scores, np.full(len(others), rest)])
