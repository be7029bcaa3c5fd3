"""What is held out of a set: queries that share nothing with the training pairs."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.core.fingerprint import content_id

QUERIES, DOCUMENTS = 2000, 10_000
"""Held-out queries, and documents they are searched in."""
MOST_HELD_OUT = 0.125
"""Largest share of the pairs that is held out."""
FEWEST_GROUPS = 1000
"""Groups are kept on one side of the split if there are at least so many; fewer are labels, not groups."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """``relevant[i]`` are the places of query i's documents in ``documents``."""

    queries: list[str]
    documents: list[str]
    relevant: list[list[int]]


def held_out_rows(pairs: pa.Table) -> NDArray[np.bool_]:
    """Mark held-out pairs ``(N,)``: they share no query, no document and no group with the others.

    Whole components are held out, in the order of their hashes. A component of more than a hundredth of the pairs is
    for training.
    """
    component = _components(pairs)
    names = np.array([content_id(query) for query in pairs["query"].to_pylist()])
    least = {number: name for name, number in sorted(zip(names, component.tolist(), strict=True), reverse=True)}
    sizes = np.bincount(component)
    wanted = min(QUERIES, round(MOST_HELD_OUT * len(pairs)))
    chosen, taken = [], 0
    for number in sorted(least, key=least.__getitem__):
        if taken < wanted and sizes[number] <= max(len(pairs) // 100, 1):
            chosen.append(number)
            taken += int(sizes[number])
    held_out: NDArray[np.bool_] = np.isin(component, chosen)
    return held_out


def collect(pairs: pa.Table, test: NDArray[np.bool_]) -> HeldOut:
    """The held-out queries, against their documents and others, drawn by hash, up to ``DOCUMENTS``."""
    documents = pairs["document"].to_pylist()
    asked: dict[str, set[str]] = {}
    for row in np.flatnonzero(test):
        asked.setdefault(pairs["query"][int(row)].as_py(), set()).add(documents[row])
    wanted = set().union(*asked.values())
    others = sorted(set(documents) - wanted, key=content_id)[: max(DOCUMENTS - len(wanted), 0)]
    corpus = sorted(wanted) + others
    place = {text: number for number, text in enumerate(corpus)}
    queries = sorted(asked, key=content_id)
    return HeldOut(
        queries=queries, documents=corpus, relevant=[sorted(place[text] for text in asked[query]) for query in queries]
    )


def _components(pairs: pa.Table) -> NDArray[np.int32]:
    """Number of each pair's component ``(N,)``: pairs with a common query, document or group are joined."""
    count = len(pairs)
    edges = []
    for name in ("query", "document", "group"):
        values = np.array(pairs[name].to_pylist(), dtype=object)  # as texts, all would be as long as the longest
        groups, label = np.unique(values, return_inverse=True)
        if name == "group" and len(groups) < FEWEST_GROUPS:
            continue
        first = np.full(len(groups), -1)
        first[label[::-1]] = np.arange(count)[::-1]
        joined = values != ""
        edges.append(np.stack([np.arange(count), first[label]])[:, joined])
    rows, columns = np.concatenate(edges, axis=1)
    graph = coo_matrix((np.ones(len(rows), bool), (rows, columns)), shape=(count, count))
    component: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return component
