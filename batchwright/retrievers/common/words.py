"""Retrieval by words: BM25."""

import re
from collections.abc import Iterator, Sequence

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray

from batchwright.core.arguments import check_count, check_texts
from batchwright.core.errors import InputError
from batchwright.core.names import BM25
from batchwright.core.params import Language
from batchwright.core.terminal import bar
from batchwright.core.words import MARKS, words
from batchwright.retrievers.common.dense import keep_best
from batchwright.retrievers.common.retriever import Ranking

K1, B = 0.9, 0.4
"""Parameters of BM25 as Anserini and BEIR set them: nDCG@10 .676 on SciFact with stemming, .662 without."""
WITH_STOP_WORDS = (
    *("danish", "dutch", "english", "french", "german", "italian"),
    *("norwegian", "portuguese", "russian", "spanish", "swedish", "turkish"),
)
"""Languages whose stop words ``bm25s`` has."""
PROGRESS_FROM = 100_000
"""From so many documents on BM25 takes long, and shows how far it is."""
WORD = re.compile(rf"(?=\w[\w{MARKS}])(?:\w+[{MARKS}]*)++")  # of two characters or more
"""What counts as a word of a text with spaces; that is the library's default."""


def words_of(language: Language | None) -> str:
    """Return what BM25 compares, in place of a model's hash."""
    return f"{BM25} {language or 'of whole words'}"


class WordIndex:
    """An ``Index`` by Lucene's BM25 over stems of a language; of scripts without spaces over letters and pairs of them.

    Without a language, it is over whole words.

    Documents without a word of the query are not ranked: the places left have number -1, score 0.

    Raises:
        InputError: ``documents`` is no list of texts, or none contains a word that BM25 indexes.
    """

    def __init__(self, documents: Sequence[str], language: Language | None = "english") -> None:
        check_texts("documents", documents)
        self._count = len(documents)
        self._language = language
        self._progress = {"show_progress": len(documents) >= PROGRESS_FROM}
        tokens = self._stems(documents)
        if not any(tokens.ids):
            raise InputError("BM25 cannot rank the documents: they contain no words, only punctuation and stop words")
        self._index = bm25s.BM25(k1=K1, b=B)
        self._index.index(tokens, **self._progress)

    def search(self, queries: Sequence[str], k: int, domains: Sequence[str] | None = None) -> Ranking:  # noqa: ARG002
        """See ``batchwright.retrievers.Index``."""
        check_texts("queries", queries)
        check_count("k", k)
        k = min(k, self._count)
        indices = np.full((len(queries), k), -1, np.int64)
        scores = np.zeros((len(queries), k), np.float32)
        for row, of_documents in enumerate(self.scores(queries)):
            best = _best(of_documents, k)
            indices[row, : len(best)], scores[row, : len(best)] = best, of_documents[best]
        return indices, scores

    def scores(self, queries: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        """Yield the scores ``(N,)`` of all documents for each query."""
        asked = bm25s.tokenization.convert_tokenized_to_string_list(self._stems(queries))
        for query in bar(asked, desc="BM25", unit="query"):
            yield self._index.get_scores_from_ids(self._index.get_tokens_ids(query))

    def _stems(self, texts: Sequence[str]) -> bm25s.tokenization.Tokenized:
        cut = [" ".join(words(text.lower(), WORD)) for text in texts]
        stemmer = Stemmer.Stemmer(self._language) if self._language else None
        stopwords = self._language if self._language in WITH_STOP_WORDS else None
        return bm25s.tokenize(
            cut, lower=False, token_pattern=r"\S+", stopwords=stopwords, stemmer=stemmer, **self._progress
        )


def _best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Indices of the k largest of ``scores`` ``(N,)`` above 0. ``bm25s`` leaves the order of equal ones to the CPU."""
    found = np.flatnonzero(scores > 0)
    kept: NDArray[np.int64] = found[keep_best(scores[None, found], k)[0]]
    return kept[np.argsort(-scores[kept], kind="stable")]
