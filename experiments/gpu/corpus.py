"""The pairs and collections that are carried: read, divided into training and test, and kept apart."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.core.neighbours import processes
from batchwright.core.normal_form import normal_forms
from batchwright.formats.beir import BeirFolder
from experiments.gpu.folder import Kind
from experiments.rivals.sets import collect, held_out_rows
from pipelines.ingest.sources.docstrings import DocstringsSource

CHARACTERS = 384
"""Texts are cut after so many: six for each of 64 tokens."""
SAME = 100
"""Texts are the same if so many characters of their normal forms are."""
SMALL_PACKAGES = "other packages"
UNSEEN_SETS = ("fever", "finance_10k", "medical_forum")
UNSEEN_PACKAGES = ("asyncssh", "networkx", "polars", "pymongo", "scipy")
"""Domains that are not trained on."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is carried.

    A batch has ``batch`` pairs, and each policy ``pairs`` in all. A package with fewer than ``least`` functions is no
    domain. ``share`` of a domain's pairs is held out, or ``most``, if these are at least ``fewest``; ``unseen`` queries
    of an unseen set are asked, a third of that of an unseen package, and ``beir`` of a BEIR folder. Collections have
    ``documents``, but all of BEIR.
    """

    batch: int = 1024
    pairs: int = 1_000_000
    least: int = 30
    share: float = 0.055
    most: int = 600
    fewest: int = 10
    unseen: int = 900
    beir: int = 2000
    documents: int = 3000
    packages: tuple[str, ...] = ()
    """By default, all that are installed."""


SMALL = Sizes(
    batch=16, pairs=128, least=2, share=0.1, most=8, fewest=2, unseen=6, beir=4, documents=40, packages=("funcy",)
)


@dataclass(frozen=True, kw_only=True)
class Collection:
    """``relevant`` are the places of a query and a document, and its relevance."""

    name: str
    kind: Kind
    documents: list[str]
    queries: list[str]
    relevant: list[tuple[int, int, int]]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Training pairs by domain, collections, and counts."""

    training: dict[str, pa.Table]
    tests: list[Collection]
    about: dict[str, int]


def read_corpus(pairs: Path, beir: Path, sizes: Sizes) -> Corpus:
    """Read sets, packages and BEIR folders; no test query, and no document that answers one, is trained on.

    Nor is any text of an unseen domain or of a BEIR folder. Packages that cannot fill a batch are one domain.
    """
    read = read_sets(pairs) | read_packages(sizes)
    read = _without_repeated(read)
    unseen = {name: read.pop(name) for name in (*UNSEEN_SETS, *UNSEEN_PACKAGES) if name in read}
    tests = [read_beir(folder, sizes.beir) for folder in sorted(beir.iterdir())]
    forbidden = set(_keys(text for test in tests for text in (*test.documents, *test.queries)))
    for name, table in unseen.items():
        tests.append(_unseen(name, table, sizes))
        forbidden |= set(_keys(_texts(table)))
    training, held_out = {}, 0
    for name, table in read.items():
        test = held_out_rows(table, sizes.most, sizes.share)
        test &= test.sum() >= sizes.fewest
        if test.any():
            tests.append(_collection(name, "held out", table, test, sizes.documents))
            forbidden |= set(_keys(_texts(table.filter(pa.array(test)))))
            held_out += len(tests[-1].queries)
        training[name] = table.filter(pa.array(~test))
    before = sum(map(len, training.values()))
    training = {name: _without(table, forbidden) for name, table in training.items()}
    after = sum(map(len, training.values()))
    domains = _merge_small(training, sizes.batch)
    about = {
        "pairs": after,
        "trained_domains": len(training),
        "unseen_domains": len(unseen),
        "held_out_queries": held_out,
        "pairs_dropped_as_seen_in_tests": before - after,
        "packages_merged": len(training) - len(domains) + 1,
    }
    return Corpus(training=domains, tests=tests, about=about)


def read_sets(folder: Path) -> dict[str, pa.Table]:
    """Read the sets of a folder."""
    return {file.stem: _cut(pq.read_table(file)) for file in sorted(folder.glob("*.parquet"))}


def read_packages(sizes: Sizes) -> dict[str, pa.Table]:
    """Read docstrings and functions of installed packages, by package."""
    names = sizes.packages or tuple(sorted({*packages_distributions(), *sys.stdlib_module_names}))
    with ProcessPoolExecutor(processes()) as pool:
        tables = dict(zip(names, pool.map(_read_package, names, chunksize=4), strict=True))
    return {name: table for name, table in tables.items() if len(table) >= sizes.least}


def _read_package(name: str) -> pa.Table:
    try:
        source = DocstringsSource(packages=[name], max_characters=CHARACTERS)
        rows = [row for row in source.rows(source.parts()[0]) if row.fault is None]
    except (ValueError, ImportError, InputError):  # no package with Python source
        rows = []
    columns = {side: [str(getattr(row, side)) for row in rows] for side in ("query", "document")}
    return _cut(pa.table({**columns, "domain": [name] * len(rows), "group": [""] * len(rows)}))


def _cut(table: pa.Table) -> pa.Table:
    """Cut texts, and leave out pairs without text or that are there twice."""
    columns = {name: [text[:CHARACTERS].strip() for text in table[name].to_pylist()] for name in ("query", "document")}
    pairs = list(zip(columns["query"], columns["document"], strict=True))
    first = {pair: row for row, pair in reversed(list(enumerate(pairs))) if all(pair)}
    group = table["group"].to_pylist() if "group" in table.column_names else [""] * len(table)
    whole = pa.table({**columns, "group": group}, schema=pa.schema([(n, pa.string()) for n in (*columns, "group")]))
    return whole.take(pa.array(sorted(first.values()), pa.int64()))


def _without_repeated(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Leave out pairs that a domain before has: packages carry copies of others."""
    seen: set[str] = set()
    kept = {}
    for name, table in tables.items():
        names = [content_id(*pair) for pair in zip(*(table[side].to_pylist() for side in SIDES), strict=True)]
        kept[name] = table.filter(pa.array([each not in seen for each in names], pa.bool_()))
        seen |= set(names)
    return {name: table for name, table in kept.items() if len(table)}


SIDES = ("query", "document")


def _texts(table: pa.Table) -> Iterator[str]:
    for side in SIDES:
        yield from table[side].to_pylist()


def _keys(texts: Iterator[str]) -> list[str]:
    return [form[:SAME] for form in normal_forms(list(texts))]


def _without(table: pa.Table, forbidden: set[str]) -> pa.Table:
    sides = [_keys(iter(table[side].to_pylist())) for side in SIDES]
    return table.filter(pa.array([forbidden.isdisjoint(pair) for pair in zip(*sides, strict=True)], pa.bool_()))


def _merge_small(training: Mapping[str, pa.Table], batch: int) -> dict[str, pa.Table]:
    """Let the domains that cannot fill a batch be one."""
    large = {name: table for name, table in training.items() if len(table) >= batch}
    small = [table for name, table in training.items() if name not in large and len(table)]
    return large | ({SMALL_PACKAGES: pa.concat_tables(small)} if small else {})


def _unseen(name: str, table: pa.Table, sizes: Sizes) -> Collection:
    most = sizes.unseen if name in UNSEEN_SETS else max(sizes.unseen // 3, 1)
    drawn = sorted(set(table["query"].to_pylist()), key=content_id)[:most]
    test = np.isin(np.array(table["query"].to_pylist(), object), np.array(drawn, object))
    return _collection(name, "unseen", table, test, sizes.documents)


def _collection(name: str, kind: Kind, table: pa.Table, test: NDArray[np.bool_], documents: int) -> Collection:
    found = collect(table, test, documents, seen=True)
    relevant = [(query, document, 1) for query, places in enumerate(found.relevant) for document in places]
    return Collection(name=name, kind=kind, documents=found.documents, queries=found.queries, relevant=relevant)


def read_beir(folder: Path, queries: int) -> Collection:
    """Read a BEIR folder's documents and, of its queries, at most ``queries``, drawn by hash."""
    beir = BeirFolder(folder)
    documents = dict(beir.documents())
    place = {name: number for number, name in enumerate(documents)}
    judged: dict[str, list[tuple[str, int]]] = {}
    for query, document, relevance in beir.judgments():
        if relevance > 0 and document in place:
            judged.setdefault(query, []).append((document, int(relevance)))
    texts = {name: text for name, text in beir.queries() if name in judged}
    drawn = sorted(texts, key=content_id)[:queries]
    cut = partial(_shorten, CHARACTERS)
    return Collection(
        name=folder.name,
        kind="beir",
        documents=[cut(text) for text in documents.values()],
        queries=[cut(texts[name]) for name in drawn],
        relevant=[
            (number, place[document], relevance)
            for number, name in enumerate(drawn)
            for document, relevance in judged[name]
        ],
    )


def _shorten(most: int, text: str) -> str:
    return text[:most].strip()


def text_numbers(texts: Sequence[str], numbers: dict[str, int]) -> NDArray[np.int32]:
    """The number of each text; new texts get the next ones."""
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int32)
