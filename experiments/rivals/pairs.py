"""Sets of pairs as the rivals see them: training pairs with surrogate vectors, and held-out queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.core.fingerprint import content_id
from batchwright.formats.vectors import PairVectors
from experiments.rivals.surrogate import surrogate_vectors

QUERIES, DOCUMENTS = 2000, 10_000
"""Held-out queries, and documents they are searched in."""
MOST_HELD_OUT = 0.125
"""Largest share of the pairs that is held out."""
FEWEST_GROUPS = 1000
"""Groups are kept on one side of the split if there are at least so many; fewer are labels, not groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Training:
    """Training pairs: ``queries``, ``documents`` and ``domains`` have N entries each."""

    queries: list[str]
    documents: list[str]
    domains: NDArray[np.str_]
    vectors: PairVectors

    def __len__(self) -> int:
        return len(self.queries)

    def by_domain(self) -> dict[str, NDArray[np.int64]]:
        """The rows of each domain, in the order of the domains' names."""
        return {str(name): np.flatnonzero(self.domains == name) for name in np.unique(self.domains)}


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """``relevant[i]`` are the places of query i's documents in ``documents``."""

    queries: list[str]
    documents: list[str]
    relevant: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class PairSet:
    """A set to train and to test on; ``seconds`` is the time that the surrogate's vectors of all its pairs took."""

    name: str
    training: Training
    held_out: HeldOut
    seconds: float


def read_set(name: str, files: Sequence[Path], vectors: Path, limit: int | None) -> PairSet:
    """Read Parquet files with the columns query, document, domain and group as one set.

    ``limit`` keeps the first pairs of each file. Vectors are read from the folder ``vectors``, or made there.
    """
    tables = [pq.read_table(file).slice(0, limit) for file in files]
    found = [surrogate_vectors(vectors / f"{file.stem}.npz", table) for file, table in zip(files, tables, strict=True)]
    pairs = pa.concat_tables(tables)
    both = np.concatenate([of_file.queries for of_file in found] + [of_file.documents for of_file in found])
    test = _held_out_rows(pairs)
    rows = np.flatnonzero(~test)
    training = Training(
        queries=pairs["query"].take(rows).to_pylist(),
        documents=pairs["document"].take(rows).to_pylist(),
        domains=np.array(pairs["domain"].take(rows).to_pylist()),
        vectors=PairVectors(vectors=both, rows=np.stack([rows, rows + len(pairs)])),
    )
    seconds = sum(of_file.seconds for of_file in found)
    return PairSet(name=name, training=training, held_out=_held_out(pairs, test), seconds=seconds)


def _held_out_rows(pairs: pa.Table) -> NDArray[np.bool_]:
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


def _components(pairs: pa.Table) -> NDArray[np.int32]:
    """Number of each pair's component ``(N,)``: pairs with a common query, document or group are joined."""
    count = len(pairs)
    edges = []
    for name in ("query", "document", "group"):
        values = np.array(pairs[name].to_pylist())
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


def _held_out(pairs: pa.Table, test: NDArray[np.bool_]) -> HeldOut:
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
