"""Read sets of pairs: Parquet files, BEIR folders and installed packages."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.beir import BeirFolder
from experiments.masks.sets import Labelled, PairSet
from pipelines.ingest.normalise import RowError, normalise
from pipelines.ingest.sources.base import Part
from pipelines.ingest.sources.docstrings import DocstringsSource

PACKAGES = ("torch",)
"""Installed packages whose docstrings and code are a set each, as the source ``docstrings`` reads them."""

LABELS: dict[str, Callable[[str, str, str], Labelled]] = {
    "banking77": lambda query, document, group: Labelled(query, document, group, group),
    "perspectrum": lambda query, document, _: Labelled(query, document, query, query),
    "scitldr": lambda query, document, _: Labelled(document, query, document, document),
}
"""What decides, by the name of the set: the same intent; the same claim; the same abstract, which is the query."""


def find_sets(pairs: Path, beir: Path | None) -> dict[str, Callable[[], PairSet]]:
    """Return a function for each set that reads it: the files in ``pairs``, the folders in ``beir`` and the packages.

    Raises:
        InputError: ``pairs`` holds no Parquet file.
    """
    files = sorted(pairs.glob("*.parquet"))
    if not files:
        raise InputError(f"{pairs}: no *.parquet files; give a folder of pairs with query, document and group")
    folders = sorted(file.parents[1] for file in beir.glob("*/qrels/test.tsv")) if beir else []
    found = {file.stem: partial(_from_parquet, file) for file in files}
    judged = {folder.name: partial(_from_beir, folder) for folder in folders if _several_answers(folder)}
    return {**found, **judged, **{name: partial(_from_package, name) for name in PACKAGES}}


def _from_parquet(file: Path) -> PairSet:
    try:
        table = pq.read_table(file, columns=["query", "document", "group"])
        rows = zip(*(table[name].to_pylist() for name in ("query", "document", "group")), strict=True)
    except KeyError as error:
        raise InputError(f"{file}: needs the columns query, document and group, but {error.args[0]}") from None
    labelled = LABELS.get(file.stem, _nothing_known)
    pairs = {
        content_id(file.stem, query, document): labelled(query, document, group) for query, document, group in rows
    }
    same = frozenset((pair.asks, pair.asks) for pair in pairs.values())
    return PairSet.of(file.stem, pairs, same if file.stem in LABELS else None)


def _nothing_known(query: str, document: str, _: str) -> Labelled:
    return Labelled(query, document)


def _from_beir(folder: Path) -> PairSet:
    """Pair each query with each document that is judged relevant."""
    source = BeirFolder(folder)
    queries, documents = dict(source.queries()), dict(source.documents())
    true = frozenset((query, document) for query, document in _relevant(folder) if document in documents)
    pairs = {
        content_id(folder.name, queries[query], documents[document]): Labelled(
            queries[query], documents[document], query, document
        )
        for query, document in sorted(true)
        if query in queries
    }
    return PairSet.of(folder.name, pairs, true)


def _several_answers(folder: Path) -> bool:
    """Whether any query has more than one relevant document; the others say nothing about false negatives."""
    return max(Counter(query for query, _ in _relevant(folder)).values(), default=0) > 1


def _relevant(folder: Path) -> Iterator[tuple[str, str]]:
    return ((query, document) for query, document, grade in BeirFolder(folder).judgments() if grade > 0)


def _from_package(name: str) -> PairSet:
    source = DocstringsSource(kind="docstrings", packages=[name])
    pairs = {}
    for row in source.rows(Part(name)):
        try:
            pair = normalise(row)
        except RowError:
            continue
        pairs[content_id(pair.domain, pair.query, pair.document)] = Labelled(pair.query, pair.document)
    return PairSet.of(name, pairs, None)
