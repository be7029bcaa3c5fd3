"""Finds queries or groups with so many pairs that they would be most of a domain's test or dev split.

They stay in train. Each is in the same split in all domains, so it stays in train in all of them if it is too heavy in
one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.ingest.groups import ODD
from pipelines.ingest.read import PartRead
from pipelines.ingest.splits import Hashes, Lookup, Splits, candidates, dev, held_out

_TIMES = 2


class Heavy(NamedTuple):
    """A query or group that would have had so many ``pairs`` of all ``of`` those in a split of a domain.

    ``key`` decides its split, ``what`` is "query" or "group", and ``others`` groups share queries with it.
    """

    key: int
    what: str
    name: str
    others: int
    domain: str
    split: str
    pairs: int
    of: int


class _Split(NamedTuple):
    """The keys ``(Q,)`` in a split of a domain, and how many different pairs each has."""

    domain: str
    name: str
    share: float
    keys: Hashes
    pairs: NDArray[np.int64]


def find_heavy(domains: Mapping[str, Sequence[PartRead]], by: Splits) -> list[Heavy]:
    """Return the queries and groups that must stay in train, although their hashes say otherwise.

    Those whose split is stated are left out.

    Such a query has more pairs than all others of its split together, and more than twice as many as the queries of
    its domain have on average. A query that is alone in its split also has more than twice as many as the split should
    have: small domains may have one query there, which is better than none. If no pair of any domain would be left to
    train on, the one with most pairs stays, too. A group counts as one query.
    """
    shares = (("test", by.test, held_out), ("dev", by.dev, dev))
    splits = [_split(domain, parts, by.groups, *share) for domain, parts in domains.items() for share in shares]
    found: list[Heavy] = []
    before = -1
    while before < len(found):  # a query leaves the splits of all domains, where another may be too heavy then
        before = len(found)
        for split in splits:
            gone = np.concatenate([by.stated.hashes, np.array([heavy.key for heavy in found], np.uint64)])
            found += _heavy_in(split, domains[split.domain], by.groups, gone)
    if splits and not found and not _trains(domains, by):
        found += _heaviest(splits, domains, by)
    return found


def _trains(domains: Mapping[str, Sequence[PartRead]], by: Splits) -> bool:
    """Whether some pair is in train."""
    return any((by.of(batch["query_hash"].to_numpy()) == 0).any() for batch in candidates(domains))


def _heaviest(splits: Sequence[_Split], domains: Mapping[str, Sequence[PartRead]], by: Splits) -> Iterator[Heavy]:
    """Yield the query or group with most pairs of a split, unless all splits are stated."""
    of = [(split, np.where(np.isin(split.keys, by.stated.hashes), 0, split.pairs)) for split in splits]
    split, pairs = max(of, key=lambda each: int(each[1].max(initial=0)))
    if pairs.any():
        place = int(pairs.argmax())
        key = int(split.keys[place])
        named = _named(split.domain, domains[split.domain], by.groups, key)
        yield Heavy(key, *named, split.domain, split.name, int(pairs[place]), int(pairs.sum()))


def _split(
    domain: str,
    parts: Sequence[PartRead],
    groups: Lookup,
    name: str,
    share: float,
    chosen: Callable[[Hashes, float], NDArray[np.bool_]],
) -> _Split:
    keys, pairs = np.unique(_keys(domain, parts, groups, lambda keys: chosen(keys, share)), return_counts=True)
    return _Split(domain, name, share, keys, pairs)


def _heavy_in(split: _Split, parts: Sequence[PartRead], groups: Lookup, gone: Hashes) -> Iterator[Heavy]:
    pairs = np.where(np.isin(split.keys, gone), 0, split.pairs)
    while 2 * (most := int(pairs.max(initial=0))) > (total := int(pairs.sum())):
        in_domain = _keys(split.domain, parts, groups, lambda keys: np.ones(len(keys), bool))
        average = len(in_domain) / len(np.unique(in_domain))
        if most <= _TIMES * (average if most < total else max(average, split.share * len(in_domain))):
            return
        place = int(pairs.argmax())
        key = int(split.keys[place])
        named = _named(split.domain, parts, groups, key)
        yield Heavy(key, *named, split.domain, split.name, most, total)
        pairs[place] = 0


def _keys(
    domain: str, parts: Sequence[PartRead], groups: Lookup, chosen: Callable[[Hashes], NDArray[np.bool_]]
) -> Hashes:
    """Return the key of each different pair in a domain whose key is chosen, ``(N,)``."""
    keys, pairs = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for batch in candidates({domain: parts}):
        hashes, documents = (batch[name].to_numpy() for name in ("query_hash", "document_hash"))
        of_batch = groups.of(hashes, hashes)
        kept = chosen(of_batch)
        keys.append(of_batch[kept])
        pairs.append(hashes[kept] * ODD + documents[kept])
    different = np.unique(np.concatenate(pairs), return_index=True)[1]
    return np.concatenate(keys)[different]


def _named(domain: str, parts: Sequence[PartRead], groups: Lookup, key: int) -> tuple[str, str, int]:
    """Return whether a key is of a query or of groups, the first by name, and how many more there are."""
    queries, names = set[str](), set[str]()
    for batch in candidates({domain: parts}):
        hashes = batch["query_hash"].to_numpy()
        rows = batch.take(pa.array(np.flatnonzero(groups.of(hashes, hashes) == np.uint64(key))))
        queries.update(rows["query"][:1].to_pylist())
        names.update(rows["group"].unique().to_pylist())
    names.discard("")
    return ("group", min(names), len(names) - 1) if names else ("query", min(queries), 0)
