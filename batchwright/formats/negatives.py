"""Negatives: what decides which documents of a domain are no negatives of a query: scores, classes of duplicates,
known positives and judgements; the pairs that the filter kept, and the mined hard negatives."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.files import read_array
from batchwright.core.spill import slices, spilled, spilled_rows
from batchwright.formats.pairs import file_stem

EVERY_PAIR, NO_PAIR = np.float32(-2), np.float32(2)
"""A likeness that all pairs reach, and one that no two pairs reach."""

KEPT, DOUBTFUL, INCONSISTENT = 0, 1, 2
DROPPED = {
    DOUBTFUL: "one in five documents of the domain score as high as its own (filter.drop_doubtful)",
    INCONSISTENT: "its own document is not among the best for its query (filter.consistency)",
}
"""Why the filter dropped a pair."""


@dataclass(frozen=True, kw_only=True)
class Negatives:
    """The arrays of one domain, one row per training pair.

    ``scores`` ``(N,)`` float32: the surrogate's score f(q, d) of the pair itself.
    ``thresholds`` ``(N,)`` float32: the lowest score that makes a document a false negative of the query.
    ``likeness``: how alike two pairs must be for that, as a cosine of q + d and q' + d', or a limit a row, ``(N,)``.
    ``query_class``, ``document_class`` ``(N,)`` int32: duplicate texts have the same class.
    ``dropped`` ``(N,)`` uint8: ``KEPT``, or why the filter dropped the pair, see ``DROPPED``.
    ``mined`` ``(N, n)`` int32: rows whose documents are hard negatives of the query, hardest first; -1 means none.
    ``judged`` ``(J, 2)`` int32: query and document classes that someone judged and that are paired in no row, sorted.
    ``relevant`` ``(J,)`` bool: whether that document answers that query.

    The known positives of a query are the document classes paired with its query class in any row, and those judged to
    answer it.
    """

    scores: NDArray[np.float32]
    thresholds: NDArray[np.float32]
    likeness: np.float32 | NDArray[np.float32] = EVERY_PAIR
    query_class: NDArray[np.int32]
    document_class: NDArray[np.int32]
    dropped: NDArray[np.uint8]
    mined: NDArray[np.int32]
    judged: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 2), np.int32))
    relevant: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which pairs the filter kept, ``(N,)``."""
        kept: NDArray[np.bool_] = self.dropped == KEPT
        return kept

    def false(
        self, rows: NDArray[np.integer[Any]] | slice, scores: NDArray[np.float32], likeness: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Which documents are false negatives of the queries of ``rows`` ``(n,)``, by the surrogate.

        ``scores`` ``(n, m)`` are the surrogate's scores of m documents for each query; ``likeness`` ``(n, m)`` are the
        cosines of the query's own pair and each document's pair (``PairVectors.sums``). Both must be reached.
        """
        false: NDArray[np.bool_] = scores >= self.thresholds[rows][:, None]
        return false & (likeness >= self.limits(rows))

    def limits(self, rows: NDArray[np.integer[Any]] | slice) -> NDArray[np.float32]:
        """How alike others must be to the pairs of ``rows`` ``(n,)``, as ``(n, 1)``."""
        limits: NDArray[np.float32] = np.broadcast_to(self.likeness, len(self))[rows, None]
        return limits

    def write(self, folder: Path, domain: str) -> None:
        """Write a domain's arrays into the artifact's folder."""
        target = folder / file_stem(domain)
        target.mkdir(parents=True, exist_ok=True)
        np.save(target / "scores.npy", self.scores.astype(np.float32, copy=False))
        np.save(target / "thresholds.npy", self.thresholds.astype(np.float32, copy=False))
        np.save(target / "likeness.npy", self.likeness)
        for file, classes in zip(class_files(folder, domain), (self.query_class, self.document_class), strict=True):
            np.save(file, classes.astype(np.int32, copy=False))
        np.save(dropped_file(folder, domain), self.dropped.astype(np.uint8))
        np.save(target / "mined.npy", self.mined.astype(np.int32, copy=False))
        np.save(target / "judged.npy", self.judged.astype(np.int32))
        np.save(target / "relevant.npy", self.relevant.astype(np.bool_))

    @classmethod
    def read(cls, folder: Path, domain: str, pairs: int) -> "Negatives":
        """Read the arrays of a domain that has ``pairs`` training pairs.

        Raises:
            InputError: an array is missing or damaged, or refers to a row or class that is not there.
        """
        target = folder / file_stem(domain)
        mined = read_array(target / "mined.npy", np.int32, (pairs, None), made_by="filter", mapped=True)
        if mined.size and not -1 <= mined.min() <= mined.max() < pairs:
            raise InputError(
                f"{target}/mined.npy: refers to a row outside the {pairs} training pairs; run the stage 'filter' again"
            )
        query_class, document_class = read_classes(folder, domain, pairs)
        judged = read_array(target / "judged.npy", np.int32, (None, 2), made_by="filter")
        highest = query_class.max(initial=-1), document_class.max(initial=-1)
        if ((judged < 0) | (judged > highest)).any():
            raise InputError(
                f"{target}/judged.npy: refers to a class that no training pair has; run the stage 'filter' again"
            )
        return cls(
            scores=read_array(target / "scores.npy", np.float32, (pairs,), made_by="filter", mapped=True),
            thresholds=read_array(target / "thresholds.npy", np.float32, (pairs,), made_by="filter", mapped=True),
            likeness=np.float32(read_array(target / "likeness.npy", np.float32, (), made_by="filter")),
            query_class=query_class,
            document_class=document_class,
            dropped=read_dropped(folder, domain, pairs),
            mined=mined,
            judged=judged,
            relevant=read_array(target / "relevant.npy", np.bool_, (len(judged),), made_by="filter"),
        )


def dropped_file(folder: Path, domain: str) -> Path:
    """The file that says which of a domain's pairs the filter dropped, which is all that decides what is clustered."""
    return folder / file_stem(domain) / "dropped.npy"


def read_dropped(folder: Path, domain: str, pairs: int) -> NDArray[np.uint8]:
    """Read ``Negatives.dropped`` alone.

    Raises:
        InputError: it is missing or damaged, or gives a reason that is unknown.
    """
    file = dropped_file(folder, domain)
    dropped = read_array(file, np.uint8, (pairs,), made_by="filter")
    if not np.isin(dropped, [KEPT, *DROPPED]).all():
        raise InputError(f"{file}: gives a reason that is unknown; run the stage 'filter' again")
    return dropped


def class_files(folder: Path, domain: str) -> tuple[Path, Path]:
    """The files of ``Negatives.query_class`` and ``document_class``."""
    return folder / file_stem(domain) / "query_class.npy", folder / file_stem(domain) / "document_class.npy"


def read_classes(folder: Path, domain: str, pairs: int) -> list[NDArray[np.int32]]:
    """Read ``Negatives.query_class`` and ``document_class`` alone.

    Raises:
        InputError: one is missing or damaged.
    """
    return [read_array(file, np.int32, (pairs,), made_by="filter", mapped=True) for file in class_files(folder, domain)]


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
