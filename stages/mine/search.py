"""What a miner ranks highest for each query, with a bounded number of documents and queries in memory at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.core.names import BM25
from batchwright.core.params import Language
from batchwright.core.spill import spilled
from batchwright.formats.vectors import blocks
from batchwright.retrievers import Index, load_retriever
from batchwright.retrievers.common.words import WordIndex
from stages.negatives.choice import NONE

RESIDENT = 500_000
"""Documents that are indexed at a time. With more, models that look at other documents, and BM25, see those of a block.
"""

Found = tuple[NDArray[np.float32], NDArray[np.int32]]
"""Scores and rows ``(n, k)``, best first; where no document is, -inf and -1."""


class Miner(Protocol):
    """Finds documents."""

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> Index:
        """Number documents from 0."""


@dataclass(frozen=True)
class _Words:
    """BM25 as a miner, for texts of a language."""

    language: Language | None

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> Index:  # noqa: ARG002
        return WordIndex(documents, self.language)


def load_miner(name: str, language: Language | None) -> Miner:
    """Load a model from its folder, or BM25 for texts of a language.

    Raises:
        InputError: the folder does not contain such a model, or the model is damaged.
    """
    return _Words(language) if name == BM25 else load_retriever(Path(name))


@dataclass(frozen=True)
class Part:
    """A block of documents, a block of queries to search it for, and how many ranks they need."""

    documents: slice
    queries: slice
    ranks: int


class Search:
    """Searches the ``rows`` ``(D,)`` of a domain's ``texts`` for ``queries``, and indexes a block of them at a time."""

    def __init__(
        self, miner: Miner, domain: str, texts: pa.LargeStringArray, rows: NDArray[np.int64], queries: pa.Array
    ) -> None:
        self._miner, self._domain = miner, domain
        self._texts, self._rows, self._queries = texts, rows, queries
        self._indexed: tuple[slice, Index] | None = None

    def of_part(self, part: Part) -> Found:
        """Search one block of documents for one block of queries."""
        queries = self._queries[part.queries].to_pylist()
        places, scores = self._index(part.documents).search(queries, part.ranks, [self._domain] * len(queries))
        rows = np.where(places < 0, NONE, self._rows[part.documents][places])
        return np.where(places < 0, -np.inf, scores).astype(np.float32), rows.astype(np.int32)

    def _index(self, documents: slice) -> Index:
        if self._indexed is None or self._indexed[0] != documents:
            self._indexed = None  # before another index takes the room
            texts = self._texts.take(pa.array(self._rows[documents])).to_pylist()
            self._indexed = documents, self._miner.index(texts, [self._domain] * len(texts))
        return self._indexed[1]

    def all(self, ranks: Iterable[int], do_parts: Map = map) -> Found:
        """Search all documents for all queries; ``ranks`` are those that each block of queries needs.

        Equal scores are ordered by row. What ``do_parts`` keeps, a run that goes on does not search again.
        """
        asked = list(zip(blocks(len(self._queries)), ranks, strict=True))
        parts = [Part(each, block, most) for each in _cut(len(self._rows)) for block, most in asked]
        width = min(max((part.ranks for part in parts), default=0), len(self._rows))
        shape = len(self._queries), width
        best: Found = spilled(shape, np.float32), spilled(shape, np.int32)
        for documents, found in groupby(zip(parts, do_parts(self.of_part, parts), strict=True), key=_documents_of):
            for part, new in found:
                before = [] if documents == 0 else [(best[0][part.queries], best[1][part.queries])]
                best[0][part.queries], best[1][part.queries] = merge([*before, new], width)
        return best


def _documents_of(searched: tuple[Part, Found]) -> int:
    return int(searched[0].documents.start)


def _cut(count: int) -> Iterator[slice]:
    return (slice(start, min(start + RESIDENT, count)) for start in range(0, count, RESIDENT))


def merge(found: Sequence[Found], width: int) -> Found:
    """Return the best ``width`` of what was found in several blocks of documents, in order of their rows."""
    scores, rows = (np.concatenate(arrays, axis=1) for arrays in zip(*found, strict=True))
    lacking = ((0, 0), (0, max(width - scores.shape[1], 0)))
    scores = np.pad(scores, lacking, constant_values=-np.inf)
    rows = np.pad(rows, lacking, constant_values=NONE)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)
