"""BM25, the lexical baseline."""

from collections.abc import Sequence

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray

from batchwright.core.errors import InputError

K1, B = 0.9, 0.4
"""As Anserini and BEIR set them: nDCG@10 .676 on SciFact with stemming, .662 without."""
_MANY = 100_000
"""From so many documents on it takes long, and shows how far it is."""


def retrieve(queries: Sequence[str], documents: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rank documents by Lucene's BM25 over English stems.

    Returns:
        Indices and scores of each query's best documents, best first, ``(Q, min(k, N))`` each.

    Raises:
        InputError: no document contains a word that BM25 indexes.
    """
    shown = {"show_progress": len(documents) >= _MANY}
    tokens = _stems(documents, shown)
    if not any(tokens.ids):
        raise InputError("BM25 cannot rank the documents: they contain no words, only punctuation and stop words")
    index = bm25s.BM25(k1=K1, b=B)
    index.index(tokens, **shown)
    indices, scores = index.retrieve(_stems(queries, shown), k=min(k, len(documents)), **shown)
    return np.asarray(indices, np.int64), np.asarray(scores, np.float32)


def _stems(texts: Sequence[str], shown: dict[str, bool]) -> bm25s.tokenization.Tokenized:
    return bm25s.tokenize(list(texts), stopwords="en", stemmer=Stemmer.Stemmer("english"), **shown)
