"""Finds queries with so many pairs that they would be most of a domain's test or dev split; they stay in train.

A query is in the same split in all domains, so it stays in train in all of them if it is too heavy in one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.ingest.read import PartRead
from pipelines.ingest.splits import Hashes, dev, held_out

_TIMES = 2
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Mixes two hashes into one: of as many bits as they have, so that different pairs are as unlikely to have the same."""


class Heavy(NamedTuple):
    """A query that would have had so many ``pairs`` of all ``of`` those in a split of a domain."""

    query_hash: int
    query: str
    domain: str
    split: str
    pairs: int
    of: int


class _Split(NamedTuple):
    """The queries ``(Q,)`` in a split of a domain, and how many different pairs each has."""

    domain: str
    name: str
    share: float
    queries: Hashes
    pairs: NDArray[np.int64]


def heavy_queries(
    domains: Mapping[str, Sequence[PartRead]], test_share: float, dev_share: float, stated: Hashes
) -> list[Heavy]:
    """Return the queries that must stay in train, although their hashes say otherwise.

    Those whose split is ``stated`` are left out.

    Such a query has more pairs than all others of its split together, and more than twice as many as the queries of
    its domain have on average. A query that is alone in its split also has more than twice as many as the split should
    have: small domains may have one query there, which is better than none.
    """
    shares = (("test", test_share, held_out), ("dev", dev_share, dev))
    splits = [_split(domain, parts, *share) for domain, parts in domains.items() for share in shares]
    found: list[Heavy] = []
    before = -1
    while before < len(found):  # a query leaves the splits of all domains, where another may be too heavy then
        before = len(found)
        for split in splits:
            gone = np.array([heavy.query_hash for heavy in found], np.uint64)
            found += _heavy_in(split, domains[split.domain], np.concatenate([stated, gone]))
    return found


def _split(
    domain: str,
    parts: Sequence[PartRead],
    name: str,
    share: float,
    chosen: Callable[[Hashes, float], NDArray[np.bool_]],
) -> _Split:
    queries, pairs = np.unique(_queries(domain, parts, lambda hashes: chosen(hashes, share)), return_counts=True)
    return _Split(domain, name, share, queries, pairs)


def _heavy_in(split: _Split, parts: Sequence[PartRead], gone: Hashes) -> Iterator[Heavy]:
    pairs = np.where(np.isin(split.queries, gone), 0, split.pairs)
    while 2 * (most := int(pairs.max(initial=0))) > (total := int(pairs.sum())):
        in_domain = _queries(split.domain, parts, lambda hashes: np.ones(len(hashes), bool))
        average = len(in_domain) / len(np.unique(in_domain))
        if most <= _TIMES * (average if most < total else max(average, split.share * len(in_domain))):
            return
        place = int(pairs.argmax())
        query = int(split.queries[place])
        yield Heavy(query, _text(split.domain, parts, query), split.domain, split.name, most, total)
        pairs[place] = 0


def _queries(domain: str, parts: Sequence[PartRead], chosen: Callable[[Hashes], NDArray[np.bool_]]) -> Hashes:
    """Return the hash of the query of each different pair in a domain whose query is chosen, ``(N,)``."""
    queries, pairs = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for batch in (batch for part in parts for batch in part.candidates(domain)):
        hashes, documents = (batch[name].to_numpy() for name in ("query_hash", "document_hash"))
        kept = chosen(hashes)
        queries.append(hashes[kept])
        pairs.append(hashes[kept] * _ODD + documents[kept])
    different = np.unique(np.concatenate(pairs), return_index=True)[1]
    return np.concatenate(queries)[different]


def _text(domain: str, parts: Sequence[PartRead], query: int) -> str:
    """Return a query by its hash."""
    batches = (batch for part in parts for batch in part.candidates(domain))
    return next(
        str(batch["query"][int(places[0])])
        for batch in batches
        if len(places := np.flatnonzero(batch["query_hash"].to_numpy() == np.uint64(query)))
    )
