"""What became of a pair: where it was packed, or why it was not."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.inspect.batch import BatchView, epoch_of, view_batch
from batchwright.inspect.project import Project

_ID = re.compile("[0-9a-f]{6,32}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A pair's row in a batch."""

    epoch: int
    batch: int
    row: int


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A pair and what became of it: ``places``, the epochs that it was ``left_over`` in, or why it was never packed.

    Without the project's pairs, ``split`` is "train", because only training pairs are packed.
    """

    id: str
    domain: str
    split: str
    query: str
    places: list[Place]
    left_over: list[int]
    dropped: bool

    @property
    def fate(self) -> str:
        """What became of the pair, in words."""
        if self.split != "train":
            return f"held out for {'testing' if self.split == 'test' else 'development'}, never packed"
        if self.dropped:
            return "dropped by the filter (drop_doubtful or consistency)"
        packed = [f"epoch {at.epoch}: batch {at.batch}, row {at.row}" for at in self.places]
        return " · ".join([*packed, *(f"epoch {epoch}: left over" for epoch in self.left_over)])


@dataclass(frozen=True, kw_only=True)
class Reject:
    """A row of a source that did not become a pair."""

    source: str
    row: int
    reason: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The pairs that were asked for, the rejected rows, and the pair's row in each of its batches if there is one."""

    asked: str
    pairs: list[Pair]
    rejects: list[Reject]
    views: list[BatchView]


def trace(shards: ShardSet, project: Project, asked: str) -> Trace:
    """Look up the pairs whose id begins with ``asked``, or whose query has all of its words.

    A query that equals ``asked``, but for case, stands for all that contain the words. Queries that have the words in
    this order come first.

    Raises:
        InputError: there are none, among the rejected rows neither.
    """
    found = _find(shards, project, asked)
    rejects = project.rejects()
    rejected = [] if rejects is None else rejects.filter(_has_words(rejects["text"], asked)).to_pylist()
    if not found and not rejected:
        where = f"{project.data}/pairs" if project.domains else str(shards.folder)
        raise InputError(f"no query in {where} has all the words of '{asked}', and no id begins so")
    pairs = _fates(shards, project, found)
    of_one = pairs[0].places if len(pairs) == 1 else []
    views = [view_batch(shards, project, at.batch, at.row) for at in of_one]
    return Trace(asked=asked, pairs=pairs, rejects=[Reject(**row) for row in rejected], views=views)


def _find(shards: ShardSet, project: Project, asked: str) -> list[dict[str, str]]:
    """Return id, query, domain and, if it is known, split of the pairs asked for."""
    tables = list(_tables(shards, project))
    if _ID.fullmatch(asked):
        begins = [row for each in tables for row in each.filter(pc.starts_with(each["id"], asked.lower())).to_pylist()]
        if begins:
            return _unique(begins)
    rows = _unique(row for each in tables for row in each.filter(_has_words(each["query"], asked)).to_pylist())
    folded = {row["id"]: " ".join(row["query"].casefold().split()) for row in rows}
    phrase = " ".join(asked.casefold().split())
    return [row for row in rows if folded[row["id"]] == phrase] or sorted(
        rows, key=lambda row: phrase not in folded[row["id"]]
    )


def _unique(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return list({row["id"]: row for row in rows}.values())


def _tables(shards: ShardSet, project: Project) -> Iterator[pa.Table]:
    for domain in project.domains:
        yield project.columns(domain, "id", "query", "domain", "split")
    if not project.domains:
        yield pa.Table.from_batches(shards.columns("id", "query", "domain"))


def _has_words(texts: pa.ChunkedArray, asked: str) -> pa.ChunkedArray:
    every = [pc.match_substring(texts, word, ignore_case=True) for word in asked.split()]
    found = every[0]
    for each in every[1:]:
        found = pc.and_(found, each)
    return found


def _fates(shards: ShardSet, project: Project, found: Sequence[dict[str, str]]) -> list[Pair]:
    places = _places(shards, {row["id"] for row in found})
    unpacked = {row["domain"] for row in found if not places[row["id"]] and row.get("split") == "train"}
    dropped = {name for domain in unpacked for name in _dropped(project, domain)}
    pairs = []
    for row in found:
        at, pair = places[row["id"]], {"split": "train", **row}
        gone = row["id"] in dropped
        missing = set(range(len(shards.manifest.epochs))) - {place.epoch for place in at}
        left = sorted(missing) if pair["split"] == "train" and not gone else []
        pairs.append(Pair(**pair, places=at, left_over=left, dropped=gone))
    return pairs


def _places(shards: ShardSet, ids: set[str]) -> dict[str, list[Place]]:
    found = defaultdict(list)
    for number, batch in enumerate(shards.columns("id")):
        packed = batch["id"].to_pylist()
        if not ids.isdisjoint(packed):
            for row, name in enumerate(packed):
                if name in ids:
                    found[name].append(Place(epoch=epoch_of(shards, number), batch=number, row=row))
    return found


def _dropped(project: Project, domain: str) -> list[str]:
    """Return the ids of the pairs that the filter dropped."""
    ids: list[str] = project.train_ids(domain).to_pylist()
    kept = project.negatives(domain, len(ids)).kept
    return [ids[row] for row in np.flatnonzero(~kept)]
