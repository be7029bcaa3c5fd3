"""Which documents answer which queries: by the training pairs, where duplicates count as one, and by judgements."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.spill import slices, spilled, spilled_rows
from batchwright.formats.negatives import Negatives


class Relation:
    """Looks up the document classes of a query class, and the query classes of a document class."""

    def __init__(self, query_class: NDArray[np.int32], document_class: NDArray[np.int32]) -> None:
        self._empty = not len(query_class)
        self._documents = _Edges(query_class, document_class)
        self._queries = _Edges(document_class, query_class)

    def count(self, query_class: NDArray[np.int32]) -> NDArray[np.int64]:
        """Number of document classes of each query class, ``(n,)``."""
        return self._documents.count(query_class)

    def contains(self, query_class: NDArray[np.int32], document_class: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each document is related to its query; the arguments are broadcast."""
        return self._documents.contains(query_class, document_class)

    def among(self, query_class: NDArray[np.int32], document_class: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Matrix ``(B, B)``: whether document j is related to query i.

        Enumerates what is related instead of testing every cell, and does so from the side that has fewer: a single
        query may have a million documents.
        """
        if self._empty:
            return np.zeros((len(query_class), len(document_class)), dtype=bool)
        queries, row = np.unique(query_class, return_inverse=True)
        documents, column = np.unique(document_class, return_inverse=True)
        if self._documents.count(queries).sum() <= self._queries.count(documents).sum():
            return self._documents.among(queries, document_class)[row]
        return np.ascontiguousarray(self._queries.among(documents, query_class)[column].T)


class KnownPositives(Relation):
    """The documents paired with a query, or with a duplicate of it, in any row, and those judged to answer it."""

    def __init__(self, negatives: Negatives) -> None:
        answers = negatives.judged[negatives.relevant]
        super().__init__(
            np.concatenate([negatives.query_class, answers[:, 0]]),
            np.concatenate([negatives.document_class, answers[:, 1]]),
        )


def judged(negatives: Negatives, *, relevant: bool) -> Relation:
    """Return what judgements say beyond the training pairs: the documents that answer a query, or those that do not."""
    return Relation(*negatives.judged[negatives.relevant == relevant].T)


class _Edges:
    """Sorted pairs of classes, in which the ``right`` classes of a ``left`` class are contiguous."""

    def __init__(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> None:
        edges: NDArray[np.int64] = spilled(len(left) + 2, np.int64)
        edges[1:-1] = left
        edges[1:-1] <<= 32
        edges[1:-1] |= right
        # The last edge stands for none, so that there always is one to compare with; the first one is dropped.
        edges[0], edges[-1] = -1, np.iinfo(np.int64).max
        edges.sort()
        blocks = ((edges[1:][block], edges[:-1][block]) for block in slices(len(edges) - 1))
        self._edges: NDArray[np.int64] = spilled_rows(each[each != before] for each, before in blocks)
        self._starts = spilled(left.max(initial=-1) + 2, np.int64)
        for block in slices(len(self._starts)):
            classes = np.arange(block.start, min(block.stop, len(self._starts)))
            self._starts[block] = np.searchsorted(self._edges, classes << 32)

    def count(self, left: NDArray[np.int32]) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self._start(left + 1) - self._start(left)
        return counts

    def contains(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.bool_]:
        edges = _join(left, right)
        found: NDArray[np.bool_] = self._edges[np.searchsorted(self._edges, edges)] == edges
        return found

    def among(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Matrix ``(len(left), len(right))``: whether there is an edge."""
        counts = self.count(left)
        ends = self._edges[_ranges(self._start(left), counts)].astype(np.int32)
        order = np.argsort(right, kind="stable")
        first, last = (np.searchsorted(right[order], ends, side) for side in ("left", "right"))
        found = np.zeros((len(left), len(right)), dtype=bool)
        owners = np.repeat(np.arange(len(left)), counts)
        found[np.repeat(owners, last - first), order[_ranges(first, last - first)]] = True
        return found

    def _start(self, left: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the place of the first edge of each class; a class above all that have edges has none."""
        starts: NDArray[np.int64] = self._starts[np.minimum(left, len(self._starts) - 1)]
        return starts


def _join(left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
    edges: NDArray[np.int64] = (left.astype(np.int64) << 32) | right
    return edges


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the ranges that start at ``starts[i]`` and have ``counts[i]`` numbers."""
    ends = np.cumsum(counts)
    ranges: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)
    return ranges
