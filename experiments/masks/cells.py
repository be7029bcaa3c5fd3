"""Cells of the matrix of scores as the surrogate sees them, with the similarities that rules may use."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.fingerprint import fingerprint
from batchwright.formats.vectors import PairVectors, blocks
from experiments.masks.sets import PairSet
from experiments.rivals.sets import Surrogate as SurrogateName
from experiments.rivals.sets import surrogate_vectors
from stages.filter.rules import Limit, doubtful, likeness_limit
from stages.negatives.duplicates import duplicate_classes

NEAR_DUPLICATES = 0.9
DEPTH = 63
"""Documents of each query, the best ones by the surrogate."""
BEYOND = DEPTH + 1
"""The rank of all others."""
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class View:
    """N pairs as the filter sees them; both classes are ``(N,)``, and texts are read where vectors find no limit."""

    vectors: PairVectors
    queries: list[str]
    documents: list[str]
    query_class: NDArray[np.int32]
    document_class: NDArray[np.int32]

    @classmethod
    def of(cls, pairs: PairSet, folder: Path, surrogate: SurrogateName) -> "View":
        """Embed a set by a surrogate, or read its vectors of the same pairs from ``folder``."""
        sides = {"query": [pair.query for pair in pairs.pairs], "document": [pair.document for pair in pairs.pairs]}
        file = folder / f"{pairs.name}-{surrogate}-{fingerprint(pairs.ids)}.npz"
        vectors = surrogate_vectors(file, pa.table(sides), surrogate)
        return cls(
            vectors=PairVectors(
                vectors=np.concatenate([vectors.queries, vectors.documents]),
                rows=np.arange(2 * len(pairs.ids)).reshape(2, -1),
            ),
            queries=sides["query"],
            documents=sides["document"],
            query_class=duplicate_classes([sides["query"]], NEAR_DUPLICATES),
            document_class=duplicate_classes([sides["document"]], NEAR_DUPLICATES),
        )

    def limit(self, rng: np.random.Generator | None = None, unread: NDArray[np.bool_] | None = None) -> Limit:
        """What ``likeness: auto`` finds; ``unread`` pairs ``(N,)`` do not count."""

        def texts(rows: Ints) -> tuple[list[str], list[str]]:
            return [self.queries[row] for row in rows], [self.documents[row] for row in rows]

        weak = doubtful(self.vectors, self.vectors.scores(), self.document_class, np.random.default_rng(0))
        rng = rng or np.random.default_rng(0)
        return likeness_limit(self.vectors, self.query_class, self.document_class, rng, weak, unread, texts)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """n cells, each of a pair (q, d) and another pair (q', d'); all arrays are ``(n,)``.

    ``row`` and ``other`` are the pairs' numbers. ``rank`` is that of d' among the documents of q, ``back_rank`` that of
    d among those of q'; duplicates of a query's own document have no rank. ``typical`` is the median of the set's own
    scores, ``limit`` what ``likeness: auto`` finds for the set.
    """

    row: Ints
    other: Ints
    score: Floats
    back: Floats
    own: Floats
    other_own: Floats
    queries: Floats
    documents: Floats
    likeness: Floats
    rank: Ints
    back_rank: Ints
    typical: float
    limit: float


class Surrogate:
    """The surrogate's view of a set: ``best`` ``(N, DEPTH)`` are each query's best documents, best first, or -1."""

    def __init__(self, view: View) -> None:
        self.vectors = view.vectors
        self.own = view.vectors.scores()
        self.best = _best(view.vectors, view.document_class)
        self.limit = float(view.limit().likeness)

    def best_cells(self) -> Cells:
        """The cells of all queries and their best documents."""
        row, place = np.nonzero(self.best >= 0)
        return self.cells(row, self.best[row, place])

    def cells(self, row: Ints, other: Ints) -> Cells:
        """The cells of the queries of pairs ``row`` and the documents of pairs ``other``."""
        queries, documents, sums = (
            each(slice(None)) for each in (self.vectors.queries, self.vectors.documents, self.vectors.sums)
        )
        return Cells(
            row=row,
            other=other,
            score=_products(queries, documents, row, other),
            back=_products(queries, documents, other, row),
            own=self.own[row],
            other_own=self.own[other],
            queries=_products(queries, queries, row, other),
            documents=_products(documents, documents, row, other),
            likeness=_products(sums, sums, row, other),
            rank=self._rank(row, other),
            back_rank=self._rank(other, row),
            typical=float(np.median(self.own)),
            limit=self.limit,
        )

    def _rank(self, row: Ints, other: Ints) -> Ints:
        ranks = np.full(len(row), BEYOND, np.int64)
        for block in blocks(len(row)):
            cell, place = np.nonzero(self.best[row[block]] == other[block][:, None])
            ranks[block.start + cell] = place + 1
        return ranks


def _best(vectors: PairVectors, document_class: NDArray[np.int32]) -> Ints:
    documents, count = vectors.documents(slice(None)), len(vectors)
    best = np.full((count, DEPTH), -1, np.int64)
    kept = min(DEPTH, count)
    for start in range(0, count, 1024):
        block = slice(start, start + 1024)
        scores = vectors.queries(block) @ documents.T
        scores[document_class[block][:, None] == document_class] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
        best[block, :kept] = np.where(np.isfinite(np.take_along_axis(scores, order, axis=1)), order, -1)
    return best


def _products(left: Floats, right: Floats, row: Ints, other: Ints) -> Floats:
    products = np.empty(len(row), np.float32)
    for block in blocks(len(row)):
        products[block] = np.einsum("nd,nd->n", left[row[block]], right[other[block]])
    return products
