"""The split that each query is in, with all its pairs in all domains: what sources say, or else its hash."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.ingest.read import NOT_STATED, SPLITS, PartRead

Hashes = NDArray[np.uint64]
"""Hashes of queries' normal forms."""


class Stated(NamedTuple):
    """The ``queries`` ``(Q,)``, sorted, whose split a source says, and which it is, as places in ``SPLITS``."""

    queries: Hashes = np.empty(0, np.uint64)
    splits: NDArray[np.int8] = np.empty(0, np.int8)

    def of(self, queries: Hashes) -> NDArray[np.int8]:
        """Return the place in ``SPLITS`` of each of ``queries``, or ``NOT_STATED``."""
        if not len(self.queries):
            return np.full(len(queries), NOT_STATED, np.int8)
        places = np.minimum(np.searchsorted(self.queries, queries), len(self.queries) - 1)
        return np.where(self.queries[places] == queries, self.splits[places], np.int8(NOT_STATED))

    def among(self, queries: Iterable[Hashes]) -> "Stated":
        """Return what is stated about these queries."""
        if not len(self.queries):
            return self
        found = _union(each[self.of(each) != NOT_STATED] for each in queries)
        return Stated(found, self.of(found))

    @property
    def digest(self) -> str:
        """A hash of what is stated."""
        return hashlib.sha256(self.queries.tobytes() + self.splits.tobytes()).hexdigest()


def stated_splits(domains: Mapping[str, Sequence[PartRead]]) -> Stated:
    """Return the splits that sources say; a query that is in several is in test, or else in dev.

    So a test split is whole, whatever else holds its queries.
    """
    columns = ((batch["query_hash"].to_numpy(), batch["stated"].to_numpy()) for batch in _candidates(domains))
    rows = [(queries[stated != NOT_STATED], stated[stated != NOT_STATED]) for queries, stated in columns]
    by_split = [_union(queries[stated == place] for queries, stated in rows) for place in range(len(SPLITS))]
    queries = _union(by_split)
    splits = np.zeros(len(queries), np.int8)
    for place, of_split in enumerate(by_split):  # later ones overrule earlier ones
        splits[np.searchsorted(queries, of_split)] = place
    return Stated(queries, splits)


def query_hashes(domain: str, parts: Sequence[PartRead]) -> Iterable[Hashes]:
    """Read the hashes of a domain's queries."""
    return (batch["query_hash"].to_numpy() for batch in _candidates({domain: parts}))


def _candidates(domains: Mapping[str, Sequence[PartRead]]) -> Iterable[pa.RecordBatch]:
    return (batch for domain, parts in domains.items() for part in parts for batch in part.candidates(domain))


def _union(hashes: Iterable[Hashes]) -> Hashes:
    return np.unique(np.concatenate([np.empty(0, np.uint64), *map(np.unique, hashes)]))


@dataclass(frozen=True, kw_only=True)
class Splits:
    """How queries are split where nothing is ``stated``: shares of them to hold out, but for those that are ``heavy``.

    ``heavy`` are hashes of queries that stay in train.
    """

    test: float = 0
    dev: float = 0
    heavy: Collection[int] = ()
    stated: Stated = field(default_factory=Stated)

    def of(self, queries: Hashes) -> NDArray[np.int8]:
        """Return the place in ``SPLITS`` of each of ``queries``."""
        may_leave = ~np.isin(queries, np.array(list(self.heavy), np.uint64))
        found = np.full(len(queries), SPLITS.index("train"), np.int8)
        found[dev(queries, self.dev) & may_leave] = SPLITS.index("dev")
        found[held_out(queries, self.test) & may_leave] = SPLITS.index("test")
        stated = self.stated.of(queries)
        return np.where(stated == NOT_STATED, found, stated)


def held_out(query_hashes: Hashes, share: float) -> NDArray[np.bool_]:
    """Whether each pair is in the test split, ``(N,)``; a larger share holds out the same queries and more.

    The query's normal form alone decides: it is in the same split in all domains, and however it is written.
    """
    return query_hashes < np.uint64(share * 2.0**64)


def dev(query_hashes: Hashes, share: float) -> NDArray[np.bool_]:
    """Whether each pair is in the dev split, ``(N,)``: queries from the other end, so that either share may grow."""
    return held_out(~query_hashes, share)
