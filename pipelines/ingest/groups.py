"""Queries that go together into one split, since sources say that their pairs are of one group.

A query may stand in several groups; then these go together, too, so that neither a query nor a group is in two splits.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.core.fingerprint import text_keys
from pipelines.ingest.read import PartRead
from pipelines.ingest.splits import NO_GROUPS, Hashes, Lookup, candidates

ODD = np.uint64(0x9E3779B97F4A7C15)
"""Multiplies hashes into others: of as many bits, so that different ones stay so."""


class Groups(NamedTuple):
    """The ``keys`` of queries in groups: that of a group, or one for all groups that share queries.

    ``number`` is how many groups there are, ``apart`` how many parts that may be in different splits.
    """

    keys: Lookup = NO_GROUPS
    number: int = 0
    apart: int = 0


def find_groups(domains: Mapping[str, Sequence[PartRead]]) -> Groups:
    """Return the groups of all domains.

    The key is made of the least hash among the groups that go together: it depends neither on the order of rows nor on
    queries, so a group stays in its split when it grows.
    """
    edges = [_edges(batch) for batch in candidates(domains) if pc.any(pc.not_equal(batch["group"], "")).as_py()]
    if not edges:
        return Groups()
    queries, groups = _once(np.concatenate(edges, axis=1))
    queries, of_query = np.unique(queries, return_inverse=True)
    groups, of_group = np.unique(groups, return_inverse=True)
    shape = [len(queries) + len(groups)] * 2
    graph = coo_matrix((np.ones(len(of_query), bool), (of_query, of_group + len(queries))), shape)
    label = connected_components(graph, directed=False)[1]
    least = groups[np.unique(label[len(queries) :], return_index=True)[1]]  # each component has a group
    keys = least * ODD  # the least of several hashes is a low one, which would be held out too often
    return Groups(Lookup(queries, keys[label[: len(queries)]]), len(groups), len(least))


def _edges(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """Return each query that is in a group, and the group, once ``(2, n)``."""
    of = batch.filter(pc.not_equal(batch["group"], ""))
    names = of["group"].dictionary_encode()
    hashes: Hashes = text_keys(names.dictionary.to_pylist()).view("<u8")[::2]
    return _once(np.stack([of["query_hash"].to_numpy(), hashes[names.indices.to_numpy()]]))


def _once(edges: NDArray[np.uint64]) -> NDArray[np.uint64]:
    queries, groups = edges
    return edges[:, np.unique(queries * ODD + groups, return_index=True)[1]]
