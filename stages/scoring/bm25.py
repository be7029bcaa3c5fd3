"""BM25, the lexical baseline."""

from collections.abc import Sequence

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray

from batchwright.core.bar import bar
from batchwright.core.errors import InputError
from batchwright.retrievers.common.dense import keep_best

K1, B = 0.9, 0.4
"""As Anserini and BEIR set them: nDCG@10 .676 on SciFact with stemming, .662 without."""
_MANY = 100_000
"""From so many documents on it takes long, and shows how far it is."""


def retrieve(queries: Sequence[str], documents: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rank documents by Lucene's BM25 over English stems.

    Returns:
        Indices and scores of each query's best documents, best first, ``(Q, min(k, N))`` each; equal scores are
        ordered by index. Documents without a word of the query are not ranked: the places left have index -1, score 0.

    Raises:
        InputError: no document contains a word that BM25 indexes.
    """
    shown = {"show_progress": len(documents) >= _MANY}
    tokens = _stems(documents, shown)
    if not any(tokens.ids):
        raise InputError("BM25 cannot rank the documents: they contain no words, only punctuation and stop words")
    index = bm25s.BM25(k1=K1, b=B)
    index.index(tokens, **shown)
    words = bm25s.tokenization.convert_tokenized_to_string_list(_stems(queries, shown))
    k = min(k, len(documents))
    indices = np.full((len(queries), k), -1, np.int64)
    scores = np.zeros((len(queries), k), np.float32)
    for row, own in enumerate(bar(words, desc="BM25", unit="query")):
        every = index.get_scores_from_ids(index.get_tokens_ids(own))
        best = _best(every, k)
        indices[row, : len(best)], scores[row, : len(best)] = best, every[best]
    return indices, scores


def _best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Indices of the k largest of ``scores`` ``(N,)`` above 0. ``bm25s`` leaves the order of equal ones to the CPU."""
    found = np.flatnonzero(scores > 0)
    kept: NDArray[np.int64] = found[keep_best(scores[None, found], k)[0]]
    return kept[np.argsort(-scores[kept], kind="stable")]


def _stems(texts: Sequence[str], shown: dict[str, bool]) -> bm25s.tokenization.Tokenized:
    return bm25s.tokenize(list(texts), stopwords="en", stemmer=Stemmer.Stemmer("english"), **shown)
