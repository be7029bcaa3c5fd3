"""Finds pairs that several domains have: they count once in each, and so more than others."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipelines.ingest.groups import ODD
from pipelines.ingest.read import PartRead
from pipelines.ingest.splits import candidates, union

_LEAST = 0.01
"""Share of the smaller domain's pairs from which on it is told."""


class Shared(NamedTuple):
    """Two domains that have ``pairs`` in common, of all ``of`` in the one that has fewer."""

    domain: str
    other: str
    pairs: int
    of: int


def find_shared(domains: Mapping[str, Sequence[PartRead]]) -> list[Shared]:
    """Return the domains that share pairs with another one, most first; queries are equal if their normal forms are.

    A pair of three domains counts for the first and second, and the second and third.
    """
    if len(domains) < 2:
        return []
    pairs = [
        union(
            batch["query_hash"].to_numpy() * ODD + batch["document_hash"].to_numpy()
            for batch in candidates({domain: parts})
        )
        for domain, parts in domains.items()
    ]
    names, sizes = list(domains), [len(keys) for keys in pairs]
    keys, places = np.concatenate(pairs), np.repeat(np.arange(len(pairs)), sizes)
    order = np.argsort(keys, kind="stable")
    keys, places = keys[order], places[order]
    again = np.flatnonzero(keys[1:] == keys[:-1])
    both = np.stack([places[again], places[again + 1]])
    couples, counts = np.unique(both, axis=1, return_counts=True)
    shared = []
    for couple, count in zip(couples.T.tolist(), counts.tolist(), strict=True):
        small, large = sorted(couple, key=sizes.__getitem__)
        if count >= _LEAST * sizes[small]:
            shared.append(Shared(names[small], names[large], count, sizes[small]))
    return sorted(shared, key=lambda each: -each.pairs)
