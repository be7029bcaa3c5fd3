"""BM25, the baseline that reads words."""

from collections.abc import Sequence

import bm25s
import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError


def retrieve(queries: Sequence[str], documents: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Best ``min(k, N)`` documents of each query: indices and Lucene's BM25 scores, ``(Q, k)`` each."""
    tokens = bm25s.tokenize(list(documents), show_progress=False)
    if not any(tokens.ids):
        raise InputError("the documents to search hold no words, only signs and stop words; BM25 cannot rank them")
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    words = bm25s.tokenize(list(queries), show_progress=False)
    indices, scores = index.retrieve(words, k=min(k, len(documents)), show_progress=False)
    return np.asarray(indices, np.int64), np.asarray(scores, np.float32)
