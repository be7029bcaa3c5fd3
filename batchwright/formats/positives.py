"""Known positives: which documents stand beside a query, or one like it, in any training pair of a domain."""

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.negatives import Negatives


class KnownPositives:
    """The document classes of each query class, and the query classes of each document class."""

    def __init__(self, negatives: Negatives) -> None:
        self._documents = _Edges(negatives.query_class, negatives.document_class)
        self._queries = _Edges(negatives.document_class, negatives.query_class)

    def count(self, query_class: NDArray[np.int32]) -> NDArray[np.int64]:
        """Document classes of each query class, ``(n,)``."""
        return self._documents.count(query_class)

    def contains(self, query_class: NDArray[np.int32], document_class: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether a document is a known positive of a query, by broadcasting."""
        return self._documents.contains(query_class, document_class)

    def among(self, query_class: NDArray[np.int32], document_class: NDArray[np.int32]) -> NDArray[np.bool_]:
        """``(B, B)``: whether document j is a known positive of query i.

        Looks up what each row has instead of each cell, from the side that has less: a query may have a
        million documents.
        """
        queries, row = np.unique(query_class, return_inverse=True)
        documents, column = np.unique(document_class, return_inverse=True)
        if self._documents.count(queries).sum() <= self._queries.count(documents).sum():
            return self._documents.among(queries, document_class)[row]
        return np.ascontiguousarray(self._queries.among(documents, query_class)[column].T)


class _Edges:
    """Pairs of classes, sorted: the ``right`` ones of each ``left`` one lie together."""

    def __init__(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> None:
        self._edges = np.unique(_join(left, right))
        self._starts = np.searchsorted(self._edges, np.arange(left.max(initial=-1) + 2, dtype=np.int64) << 32)

    def count(self, left: NDArray[np.int32]) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self._starts[left + 1] - self._starts[left]
        return counts

    def contains(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.bool_]:
        edges = _join(left, right)
        places = np.minimum(np.searchsorted(self._edges, edges), len(self._edges) - 1)
        found: NDArray[np.bool_] = self._edges[places] == edges
        return found

    def among(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.bool_]:
        """``(len(left), len(right))``: where there is an edge."""
        counts = self.count(left)
        ends = self._edges[_ranges(self._starts[left], counts)].astype(np.int32)
        order = np.argsort(right, kind="stable")
        first, last = (np.searchsorted(right[order], ends, side) for side in ("left", "right"))
        found = np.zeros((len(left), len(right)), dtype=bool)
        owners = np.repeat(np.arange(len(left)), counts)
        found[np.repeat(owners, last - first), order[_ranges(first, last - first)]] = True
        return found


def _join(left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
    edges: NDArray[np.int64] = (left.astype(np.int64) << 32) | right
    return edges


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """``counts[i]`` numbers from ``starts[i]`` on, for all i one after another."""
    ends = np.cumsum(counts)
    ranges: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)
    return ranges
