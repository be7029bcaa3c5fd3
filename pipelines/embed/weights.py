"""Word weights: pure functions from word counts ``(n, words)`` to a sparse matrix of the same shape.

``tfidf``, with N and df counted over both sides::

    x = (1 + ln tf) * (1 + ln((1 + N) / (1 + df)))

``bm25``, with N, df and the mean length taken over documents::

    x = sqrt(idf) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))
    idf = ln(1 + (N - df + 1/2) / (df + 1/2))

BM25 itself is not symmetric: it weights a document's words by that fraction times idf, and a query's words by their
counts. A vector store has one vector per text, whichever side the text is on. So queries are weighted like documents,
and each side gets the square root of idf. If no word is repeated in a query, its inner product with a document is their
BM25 score times a factor that depends on the query alone, so documents are ranked as by BM25. A repeated query word
saturates instead of counting twice.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pipelines.embed.params import Bm25Params, TfidfParams

Weighting = Callable[[csr_array], csr_array]


def fit_weights(params: TfidfParams | Bm25Params, queries: csr_array, documents: csr_array) -> Weighting:
    """Fit the weighting of a domain to the word counts of sampled queries and documents."""
    if isinstance(params, TfidfParams):
        return _tfidf(queries, documents)
    return _bm25(params, documents)


def _tfidf(queries: csr_array, documents: csr_array) -> Weighting:
    total = queries.shape[0] + documents.shape[0]
    idf = 1 + np.log((1 + total) / (1 + _texts_with(queries) + _texts_with(documents)))

    def weigh(counts: csr_array) -> csr_array:
        return _with_values(counts, (1 + np.log(counts.data)) * idf[counts.indices])

    return weigh


def _bm25(params: Bm25Params, documents: csr_array) -> Weighting:
    found = _texts_with(documents)
    root_idf = np.sqrt(np.log1p((documents.shape[0] - found + 0.5) / (found + 0.5)))
    mean_length = documents.sum() / documents.shape[0]

    def weigh(counts: csr_array) -> csr_array:
        lengths = np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
        saturation = params.k1 * (1 - params.b + params.b * lengths / mean_length)
        fraction = counts.data * (params.k1 + 1) / (counts.data + saturation)
        return _with_values(counts, fraction * root_idf[counts.indices])

    return weigh


def _texts_with(counts: csr_array) -> NDArray[np.int64]:
    """Number of texts that contain each word, ``(words,)``."""
    return np.bincount(counts.indices, minlength=counts.shape[1])


def _with_values(counts: csr_array, values: NDArray[np.floating]) -> csr_array:
    return csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)
