"""The split that each query is in, with all its pairs in all domains: what sources say, or else its hash.

Queries of one group go together, by the group's hash.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.ingest.read import NOT_STATED, SPLITS, PartRead

Hashes = NDArray[np.uint64]
"""Hashes of queries' normal forms, or keys of queries that go together."""


class Lookup(NamedTuple):
    """Some ``hashes`` ``(Q,)``, sorted, and the value of each."""

    hashes: Hashes
    values: NDArray[Any]

    def of(self, hashes: Hashes, otherwise: NDArray[Any] | np.int8) -> NDArray[Any]:
        """Return the value of each of ``hashes``, or ``otherwise``."""
        if not len(self.hashes):
            return np.broadcast_to(otherwise, len(hashes))
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[places] == hashes, self.values[places], otherwise)

    @property
    def digest(self) -> str:
        """A hash of all."""
        return hashlib.sha256(self.hashes.tobytes() + self.values.tobytes()).hexdigest()


NO_GROUPS = Lookup(np.empty(0, np.uint64), np.empty(0, np.uint64))
NONE_STATED = Lookup(np.empty(0, np.uint64), np.empty(0, np.int8))


@dataclass(frozen=True, kw_only=True)
class Splits:
    """How queries are split: shares of them to hold out, but for those that are ``heavy`` or whose split is stated.

    ``groups`` are the keys of queries that go together with others, which stand for them in all else: others are keys
    of their own. ``heavy`` are keys that stay in train, and ``stated`` are places in ``SPLITS`` that sources say.
    """

    test: float = 0
    dev: float = 0
    heavy: Collection[int] = ()
    stated: Lookup = NONE_STATED
    groups: Lookup = NO_GROUPS

    def keys(self, queries: Hashes) -> Hashes:
        """Return what decides the split of each of ``queries``."""
        return self.groups.of(queries, queries)

    def of(self, queries: Hashes) -> NDArray[np.int8]:
        """Return the place in ``SPLITS`` of each of ``queries``."""
        keys = self.keys(queries)
        may_leave = ~np.isin(keys, np.array(list(self.heavy), np.uint64))
        found = np.full(len(queries), SPLITS.index("train"), np.int8)
        found[dev(keys, self.dev) & may_leave] = SPLITS.index("dev")
        found[held_out(keys, self.test) & may_leave] = SPLITS.index("test")
        return self.stated.of(keys, found)

    def among(self, queries: Iterable[Hashes]) -> Self:
        """Return what concerns these queries: what is stated of others, and their groups, are left out."""
        if not len(self.stated.hashes) and not len(self.groups.hashes):
            return self
        known = union(each[self._is_known(each)] for each in queries)
        keys = self.keys(known)
        apart, stated = keys != known, np.unique(keys[np.isin(keys, self.stated.hashes)])
        return replace(
            self,
            groups=Lookup(known[apart], keys[apart]),
            stated=Lookup(stated, self.stated.of(stated, np.int8(NOT_STATED))),
        )

    def _is_known(self, queries: Hashes) -> NDArray[np.bool_]:
        keys = self.keys(queries)
        known: NDArray[np.bool_] = (keys != queries) | (self.stated.of(keys, np.int8(NOT_STATED)) != NOT_STATED)
        return known


def stated_splits(domains: Mapping[str, Sequence[PartRead]], groups: Lookup) -> Lookup:
    """Return the splits that sources say, by keys; one that is in several is in test, or else in dev.

    So a test split is whole, whatever else holds its queries or groups.
    """
    columns = ((batch["query_hash"].to_numpy(), batch["stated"].to_numpy()) for batch in candidates(domains))
    rows = [(queries[stated != NOT_STATED], stated[stated != NOT_STATED]) for queries, stated in columns]
    rows = [(groups.of(queries, queries), stated) for queries, stated in rows]
    by_split = [union(keys[stated == place] for keys, stated in rows) for place in range(len(SPLITS))]
    keys = union(by_split)
    splits = np.zeros(len(keys), np.int8)
    for place, of_split in enumerate(by_split):  # later ones overrule earlier ones
        splits[np.searchsorted(keys, of_split)] = place
    return Lookup(keys, splits)


def query_hashes(domain: str, parts: Sequence[PartRead]) -> Iterable[Hashes]:
    """Read the hashes of a domain's queries."""
    return (batch["query_hash"].to_numpy() for batch in candidates({domain: parts}))


def candidates(domains: Mapping[str, Sequence[PartRead]]) -> Iterable[pa.RecordBatch]:
    """Open all candidates."""
    return (batch for domain, parts in domains.items() for part in parts for batch in part.candidates(domain))


def union(hashes: Iterable[Hashes]) -> Hashes:
    """Return each hash once, sorted."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *map(np.unique, hashes)]))


def held_out(keys: Hashes, share: float) -> NDArray[np.bool_]:
    """Whether each pair is in the test split, ``(N,)``; a larger share holds out the same queries and more.

    The normal form of the query, or its group, alone decides: it is in the same split in all domains, and however it is
    written.
    """
    return keys < np.uint64(share * 2.0**64)


def dev(keys: Hashes, share: float) -> NDArray[np.bool_]:
    """Whether each pair is in the dev split, ``(N,)``: queries from the other end, so that either share may grow."""
    return held_out(~keys, share)
