"""BM25, the baseline that reads words."""

from collections.abc import Sequence

import bm25s
import numpy as np
from numpy.typing import NDArray


def retrieve(queries: Sequence[str], documents: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Best ``min(k, N)`` documents of each query: indices and Lucene's BM25 scores, ``(Q, k)`` each."""
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(documents), show_progress=False), show_progress=False)
    words = bm25s.tokenize(list(queries), show_progress=False)
    indices, scores = index.retrieve(words, k=min(k, len(documents)), show_progress=False)
    return np.asarray(indices, np.int64), np.asarray(scores, np.float32)
