"""Sets of pairs in which rules are checked, with what is known about which document answers which query."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.beir import BeirFolder
from pipelines.ingest.normalise import RowError, normalise
from pipelines.ingest.sources.base import Part
from pipelines.ingest.sources.docstrings import DocstringsSource


class Labelled(NamedTuple):
    """A pair, and the labels of what its query asks and of what its document answers; empty if nothing is known."""

    query: str
    document: str
    asks: str = ""
    answers: str = ""


@dataclass(frozen=True, kw_only=True)
class PairSet:
    """N pairs, sorted by ``ids``, which are those that the stage ``ingest`` gives.

    A document answers a query if (what the query asks, what the document answers) is in ``true``; that is ``None``
    where nothing is known.
    """

    name: str
    ids: list[str]
    pairs: list[Labelled]
    true: frozenset[tuple[str, str]] | None

    @classmethod
    def of(cls, name: str, pairs: dict[str, Labelled], true: frozenset[tuple[str, str]] | None) -> "PairSet":
        """Make a set of pairs by id."""
        ids = sorted(pairs)
        return cls(name=name, ids=ids, pairs=[pairs[key] for key in ids], true=true)

    def sample(self, count: int, wanted: Collection[str]) -> "PairSet":
        """The first ``count`` pairs, which ids make a random sample, and those whose ids are ``wanted``."""
        taken = {
            key: pair
            for place, (key, pair) in enumerate(zip(self.ids, self.pairs, strict=True))
            if place < count or key in wanted
        }
        return PairSet.of(self.name, taken, self.true)

    def truth(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the document of each pair in ``others`` answers the query of the pair in ``rows``; broadcast."""
        true = self.true or frozenset()
        labels = sorted({label for edge in true for label in edge})
        places = {label: place for place, label in enumerate(labels)}
        edges = np.array([places[asked] * len(labels) + places[answer] for asked, answer in true], np.int64)
        asks = np.array([places.get(pair.asks, -1) for pair in self.pairs], np.int64)[rows]
        answers = np.array([places.get(pair.answers, -1) for pair in self.pairs], np.int64)[others]
        known: NDArray[np.bool_] = np.isin(asks * len(labels) + answers, edges) & (asks >= 0) & (answers >= 0)
        return known


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
    parquet = {file.stem: partial(_from_parquet, file) for file in files}
    judged = {folder.name: partial(_from_beir, folder) for folder in folders if _several_answers(folder)}
    return {**parquet, **judged, **{name: partial(_from_package, name) for name in PACKAGES}}


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
