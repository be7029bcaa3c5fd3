"""Retrieval of documents by their tokens."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from formats.models import model_hash
from trainers.encoding import encode
from trainers.search import search
from trainers.sentence_model import load_model
from trainers.xtr.encode import TokenVectors, encode_tokens
from trainers.xtr.impute import Imputation, missing_scores, score_retrieved
from trainers.xtr.model import has_token_vectors, load_token_model

if TYPE_CHECKING:
    from trainers.xtr.index import TokenIndex

TOKENS = 1000
"""How many tokens a query token retrieves, k'."""


def retrieve(
    model: Path, queries: Sequence[str], documents: Sequence[str], k: int, max_length: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Best documents of each query by what its tokens retrieve from an exact index.

    A start model, which has one vector a text, retrieves as the biencoder it is; see ``trainers.variants.Variant``.
    """
    if not has_token_vectors(model):
        start = load_model(model, max_length)
        return search(encode(start, queries, "queries"), encode(start, documents, "documents"), k)
    from trainers.xtr.index import TokenIndex  # FAISS, which training does without

    encoder = load_token_model(model, max_length)
    corpus = encode_tokens(encoder, documents, "document")
    index = TokenIndex.build(corpus.vectors, corpus.lengths, model_hash(model))
    return search_tokens(index, encode_tokens(encoder, queries, "query"), k)


def search_tokens(
    index: "TokenIndex", queries: TokenVectors, k: int, tokens: int = TOKENS, imputation: Imputation = "last"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Best ``min(k, N)`` of the index' documents for each query: numbers and scores, ``(Q, k)`` each.

    Each query token retrieves ``tokens`` tokens, all where there are fewer. Equal scores are ordered by number;
    documents of which nothing was retrieved come last.
    """
    k = min(k, index.documents)
    found = [
        rank(similarities, index.owners_of(numbers), k, imputation)
        for similarities, numbers in index.retrieve(queries.vectors, queries.lengths, tokens)
    ]
    indices, scores = (np.array([each[part] for each in found]).reshape(len(found), k) for part in (0, 1))
    return indices.astype(np.int64), scores.astype(np.float32)


def rank(
    similarities: NDArray[np.float32], documents: NDArray[np.int64], k: int, imputation: Imputation
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Best ``k`` documents of one query and their scores, out of what its tokens retrieved (``score_retrieved``).

    Where something was retrieved of fewer, others follow, as like as nothing retrieved makes them.
    """
    candidates, scores, _ = score_retrieved(similarities, documents, imputation)
    best = np.argsort(-scores, kind="stable")[:k]
    others = np.setdiff1d(np.arange(k), candidates)[: k - len(best)]
    nothing = 0.0 if imputation == "none" else missing_scores(similarities, documents >= 0, imputation).sum()
    rest = min(float(nothing) / max(len(documents), 1), float(scores.min(initial=np.inf)))
    return np.concatenate([candidates[best], others]), np.concatenate([scores[best], np.full(len(others), rest)])
