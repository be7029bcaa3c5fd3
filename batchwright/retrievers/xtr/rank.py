"""Ranks documents by the tokens that a query's tokens retrieve from an index."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from batchwright.retrievers.xtr.encode import TokenVectors
from batchwright.retrievers.xtr.impute import Imputation, Retrieved, collect

if TYPE_CHECKING:
    from batchwright.retrievers.xtr.index import TokenIndex

TOKENS = 1000
"""Number of tokens that each query token retrieves, k'."""


def search_tokens(
    index: "TokenIndex", queries: TokenVectors, k: int, tokens: int = TOKENS, imputation: Imputation = "last"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the best ``min(k, N)`` of the index's N documents for each query: numbers and scores, ``(Q, k)`` each.

    Each query token retrieves ``tokens`` tokens, or all if the index has fewer. Equal scores are ordered by document
    number; documents of which no token was retrieved come last.
    """
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
