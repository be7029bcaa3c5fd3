"""BM25, the lexical baseline."""

from collections.abc import Sequence

import bm25s
import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError


def retrieve(queries: Sequence[str], documents: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rank documents by Lucene's BM25.

    Returns:
        Indices and scores of each query's best documents, best first, ``(Q, min(k, N))`` each.

    Raises:
        InputError: no document contains a word that BM25 indexes.
    """
    tokens = bm25s.tokenize(list(documents), show_progress=False)
    if not any(tokens.ids):
        raise InputError("BM25 cannot rank the documents: they contain no words, only punctuation and stop words")
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    words = bm25s.tokenize(list(queries), show_progress=False)
    indices, scores = index.retrieve(words, k=min(k, len(documents)), show_progress=False)
    return np.asarray(indices, np.int64), np.asarray(scores, np.float32)
