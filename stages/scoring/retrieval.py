"""Systems to score, which rank the documents of a collection: BM25, trained models and start models."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.terminal import bar
from batchwright.core.words import words
from batchwright.retrievers import Index, load_retriever
from batchwright.retrievers.common.dense import keep_best
from batchwright.retrievers.common.retriever import DenseIndex
from stages.scoring.collection import DEPTH, Collection, Text

BM25 = "BM25"
K1, B = 0.9, 0.4
"""Parameters of BM25 as Anserini and BEIR set them: nDCG@10 .676 on SciFact with stemming, .662 without."""
PROGRESS_FROM = 100_000
"""From so many documents on BM25 takes long, and shows how far it is."""
WORD = re.compile(r"\b\w\w+\b")
"""What counts as a word of a text with spaces; that is the library's default."""
BLOCK = 256
"""Queries whose whole ranking is in memory at once."""

System = Callable[[Collection], NDArray[np.int64]]
"""Ranks a collection. Returns indices of documents ``(Q, k)``, best first, padded with -1."""


class Ranked(NamedTuple):
    """A ranking by whole vectors, and those by vectors ``cut`` to each number of dimensions."""

    whole: NDArray[np.int64]
    cut: Mapping[int, NDArray[np.int64]] = {}


Search = Callable[[Sequence[Text], int], NDArray[np.int64]]
"""Finds the k best documents for each query, ``(Q, k)``."""


def word_system(depth: int = DEPTH) -> System:
    """Return BM25 as a system that ranks ``depth`` documents for each query."""

    def rank(collection: Collection) -> NDArray[np.int64]:
        documents = [document.text for document in collection.documents]
        return _rank(
            collection, depth, lambda queries, k: rank_by_words([query.text for query in queries], documents, k)[0]
        )

    return rank


def model_system(folder: Path, depth: int = DEPTH, tokens: int | None = None) -> System:
    """Return a system that searches with the retriever in ``folder``, which it loads again for each collection.

    ``tokens`` are those that a query token of an XTR model retrieves; by default as many as the model does.
    """
    rank = matryoshka_system(folder, (), depth, tokens)
    return lambda collection: rank(collection).whole


def matryoshka_system(
    folder: Path, dimensions: Sequence[int], depth: int = DEPTH, tokens: int | None = None
) -> Callable[[Collection], Ranked]:
    """Return the same system, which ranks by vectors cut to each of ``dimensions``, too; XTR has none."""

    def rank(collection: Collection) -> Ranked:
        documents = collection.documents
        retriever = load_retriever(folder)
        index = retriever.index([each.text for each in documents], [each.domain for each in documents])
        own: dict[str, Any] = {"tokens": tokens} if tokens and retriever.info.variant == "xtr" else {}

        def search(queries: Sequence[Text], k: int, index: Index = index) -> NDArray[np.int64]:
            return index.search([each.text for each in queries], k, [each.domain for each in queries], **own)[0]

        cut = {
            each: _rank(collection, depth, partial(search, index=cast(DenseIndex, index).cut(each)))
            for each in dimensions
        }
        return Ranked(_rank(collection, depth, search), cut)

    return rank


def _rank(collection: Collection, depth: int, search: Search) -> NDArray[np.int64]:
    """Rank the candidates of each query if it has some, else all documents but its own."""
    if collection.candidates is None:
        return _without(search(collection.queries, depth + bool(collection.own)), collection.own, depth)
    ranked = np.full((len(collection.queries), depth), -1)
    for start in range(0, len(collection.queries), BLOCK):
        found = search(collection.queries[start : start + BLOCK], len(collection.documents))
        for place, row in enumerate(found, start=start):
            kept = row[np.isin(row, collection.candidates[place])][:depth]
            ranked[place, : len(kept)] = kept
    return ranked


def _without(ranked: NDArray[np.int64], own: Sequence[int], depth: int) -> NDArray[np.int64]:
    """Return rankings ``(Q, k)`` without each query's ``own`` document, if there are any, cut to ``depth``."""
    left = ranked.copy()
    for row, number in zip(left, own, strict=False):
        kept = row[row != number]
        row[: len(kept)], row[len(kept) :] = kept, -1
    return left[:, :depth]


def rank_by_words(
    queries: Sequence[str], documents: Sequence[str], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rank documents by Lucene's BM25 over English stems; of scripts without spaces over letters and pairs of them.

    Returns:
        Indices and scores of each query's best documents, best first, ``(Q, min(k, N))`` each; equal scores are
        ordered by index. Documents without a word of the query are not ranked: the places left have index -1, score 0.

    Raises:
        InputError: no document contains a word that BM25 indexes.
    """
    k = min(k, len(documents))
    indices = np.full((len(queries), k), -1, np.int64)
    scores = np.zeros((len(queries), k), np.float32)
    for row, of_documents in enumerate(score_by_words(queries, documents)):
        best = _best(of_documents, k)
        indices[row, : len(best)], scores[row, : len(best)] = best, of_documents[best]
    return indices, scores


def score_by_words(queries: Sequence[str], documents: Sequence[str]) -> Iterator[NDArray[np.float32]]:
    """Yield the scores ``(N,)`` of all documents for each query, by the same BM25.

    Raises:
        InputError: no document contains a word that BM25 indexes.
    """
    progress = {"show_progress": len(documents) >= PROGRESS_FROM}
    tokens = _stems(documents, progress)
    if not any(tokens.ids):
        raise InputError("BM25 cannot rank the documents: they contain no words, only punctuation and stop words")
    index = bm25s.BM25(k1=K1, b=B)
    index.index(tokens, **progress)
    asked = bm25s.tokenization.convert_tokenized_to_string_list(_stems(queries, progress))
    for query in bar(asked, desc="BM25", unit="query"):
        yield index.get_scores_from_ids(index.get_tokens_ids(query))


def _best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Indices of the k largest of ``scores`` ``(N,)`` above 0. ``bm25s`` leaves the order of equal ones to the CPU."""
    found = np.flatnonzero(scores > 0)
    kept: NDArray[np.int64] = found[keep_best(scores[None, found], k)[0]]
    return kept[np.argsort(-scores[kept], kind="stable")]


def _stems(texts: Sequence[str], progress: dict[str, bool]) -> bm25s.tokenization.Tokenized:
    cut = [" ".join(words(text.lower(), WORD)) for text in texts]
    return bm25s.tokenize(
        cut, lower=False, token_pattern=r"\S+", stopwords="en", stemmer=Stemmer.Stemmer("english"), **progress
    )
