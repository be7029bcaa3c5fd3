"""Systems to score, which rank the documents of a collection: BM25, trained models and start models."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from batchwright.core.params import Language
from batchwright.core.runtime import scratch
from batchwright.retrievers import Index, Retriever, load_retriever
from batchwright.retrievers.common.retriever import DenseIndex, DiskRetriever
from batchwright.retrievers.common.words import WordIndex
from stages.scoring.collection import DEPTH, Collection, EvaluateParams, Text

DEFAULTS = EvaluateParams()
BM25 = "BM25"
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


def word_system(depth: int = DEPTH, language: Language | None = "english") -> System:
    """Return BM25 for texts of a language as a system that ranks ``depth`` documents for each query."""

    def rank(collection: Collection) -> NDArray[np.int64]:
        documents = [document.text for document in collection.documents]
        index = WordIndex(documents, language)
        return _rank(collection, depth, lambda queries, k: index.search([query.text for query in queries], k)[0])

    return rank


def model_system(folder: Path, params: EvaluateParams = DEFAULTS, depth: int | None = None) -> System:
    """Return a system that searches with the retriever in ``folder``, which it loads again for each collection.

    It ranks ``depth`` documents for each query, by default as many as ``params`` say.
    """
    rank = matryoshka_system(folder, (), params, depth)
    return lambda collection: rank(collection).whole


def matryoshka_system(
    folder: Path, dimensions: Sequence[int], params: EvaluateParams = DEFAULTS, depth: int | None = None
) -> Callable[[Collection], Ranked]:
    """Return the same system, which ranks by vectors cut to each of ``dimensions``, too; XTR has none."""
    ranked = depth or params.depth

    def rank(collection: Collection) -> Ranked:
        retriever = load_retriever(folder)
        own: dict[str, Any] = {"tokens": params.tokens} if retriever.info.variant == "xtr" else {}
        with _indexed(retriever, collection.documents, params.exact_documents) as index:

            def search(queries: Sequence[Text], k: int, index: Index = index) -> NDArray[np.int64]:
                return index.search([each.text for each in queries], k, [each.domain for each in queries], **own)[0]

            cut = {
                each: _rank(collection, ranked, partial(search, index=cast(DenseIndex, index).cut(each)))
                for each in dimensions
            }
            return Ranked(_rank(collection, ranked, search), cut)

    return rank


@contextmanager
def _indexed(retriever: Retriever, documents: Sequence[Text], exact_documents: int) -> Iterator[Index]:
    """Index documents in memory, or those of XTR on disk if there are more than ``exact_documents``."""
    texts, domains = [each.text for each in documents], [each.domain for each in documents]
    if retriever.info.variant != "xtr" or len(documents) <= exact_documents:
        yield retriever.index(texts, domains)
        return
    with TemporaryDirectory(dir=scratch("tokens")) as folder:
        yield cast(DiskRetriever, retriever).index_on_disk(texts, Path(folder), domains)


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
