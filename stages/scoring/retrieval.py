"""Systems to score: BM25, trained models and start models."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.retrievers import load_retriever
from stages.scoring import bm25
from stages.scoring.collection import Collection, Text
from stages.scoring.measures import DEPTH

BM25 = "BM25"
BLOCK = 256
"""Queries whose whole ranking is in memory at once."""

System = Callable[[Collection], NDArray[np.int64]]
"""Ranks a collection. Returns indices of documents ``(Q, k)``, best first, padded with -1."""

Search = Callable[[Sequence[Text], int], NDArray[np.int64]]
"""Finds the k best documents for each query, ``(Q, k)``."""


def word_system(depth: int = DEPTH) -> System:
    """Return BM25 as a system that ranks ``depth`` documents for each query."""

    def rank(collection: Collection) -> NDArray[np.int64]:
        documents = [document.text for document in collection.documents]
        return _rank(
            collection, depth, lambda queries, k: bm25.retrieve([query.text for query in queries], documents, k)[0]
        )

    return rank


def model_system(folder: Path, depth: int = DEPTH) -> System:
    """Return a system that searches with the retriever in ``folder``, which it loads again for each collection."""

    def rank(collection: Collection) -> NDArray[np.int64]:
        documents = collection.documents
        index = load_retriever(folder).index([each.text for each in documents], [each.domain for each in documents])

        def search(queries: Sequence[Text], k: int) -> NDArray[np.int64]:
            return index.search([each.text for each in queries], k, [each.domain for each in queries])[0]

        return _rank(collection, depth, search)

    return rank


def _rank(collection: Collection, depth: int, search: Search) -> NDArray[np.int64]:
    """Rank the candidates of each query if it has some, else all documents."""
    if collection.candidates is None:
        return search(collection.queries, depth)
    ranked = np.full((len(collection.queries), depth), -1)
    for start in range(0, len(collection.queries), BLOCK):
        found = search(collection.queries[start : start + BLOCK], len(collection.documents))
        for place, row in enumerate(found, start=start):
            kept = row[np.isin(row, collection.candidates[place])][:depth]
            ranked[place, : len(kept)] = kept
    return ranked
