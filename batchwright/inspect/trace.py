"""What became of a pair: where it was packed, or why it was not."""

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from batchwright.core.errors import InputError
from batchwright.formats.negatives import DROPPED
from batchwright.formats.shards import Manifest, ShardSet
from batchwright.inspect.artifacts import Artifacts
from batchwright.inspect.batch import BatchView, view_batch

_ID = re.compile("[0-9a-f]{6,32}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A pair's row in a batch."""

    epoch: int
    batch: int
    row: int


@dataclass(frozen=True, kw_only=True)
class LeftOver:
    """An epoch that a pair is in no batch of, and why."""

    epoch: int
    why: str


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
    left_over: list[LeftOver]
    dropped: str | None
    """Why the filter dropped it."""

    @property
    def fate(self) -> str:
        """What became of the pair, in words."""
        if self.split != "train":
            return f"held out for {'testing' if self.split == 'test' else 'development'}, never packed"
        if self.dropped:
            return f"dropped by the filter: {self.dropped}"
        packed = [f"epoch {at.epoch}: batch {at.batch}, row {at.row}" for at in self.places]
        return " · ".join([*packed, *(f"epoch {left.epoch}: left over, {left.why}" for left in self.left_over)])


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


def trace(shards: ShardSet, artifacts: Artifacts, asked: str) -> Trace:
    """Look up the pairs that ``asked`` names (see ``find_pairs``), and rejected rows that have its words.

    Raises:
        InputError: there are none, among the rejected rows neither.
    """
    rows = find_pairs(shards, artifacts, asked)
    rejects = artifacts.rejects()
    rejected = [] if rejects is None else rejects.filter(has_words(rejects["text"], asked)).to_pylist()
    if not rows and not rejected:
        where = f"{artifacts.data}/pairs" if artifacts.domains else str(shards.folder)
        raise InputError(f"no query in {where} has all the words of '{asked}', and no id begins so")
    pairs = _fates(shards, artifacts, rows)
    of_one = pairs[0].places if len(pairs) == 1 else []
    views = [view_batch(shards, artifacts, at.batch, at.row) for at in of_one]
    return Trace(asked=asked, pairs=pairs, rejects=[Reject(**row) for row in rejected], views=views)


def _fates(shards: ShardSet, artifacts: Artifacts, rows: Sequence[dict[str, str]]) -> list[Pair]:
    """Return the pairs of ``rows`` with where they were packed, or why they were not."""
    places = _places(shards, [row["id"] for row in rows])
    unpacked = {row["domain"] for row in rows if not places[row["id"]] and row.get("split") == "train"}
    dropped = {name: reason for domain in unpacked for name, reason in _dropped(artifacts, domain).items()}
    pairs = []
    for row in rows:
        at, pair = places[row["id"]], {"split": "train", **row}
        gone = dropped.get(row["id"])
        missing = set(range(len(shards.manifest.epochs))) - {place.epoch for place in at}
        packed = pair["split"] == "train" and not gone
        left = [_left_over(shards.manifest, pair["domain"], epoch) for epoch in sorted(missing)] if packed else []
        pairs.append(Pair(**pair, places=at, left_over=left, dropped=gone))
    return pairs


def _left_over(manifest: Manifest, domain: str, epoch: int) -> LeftOver:
    """Say why a kept pair of a domain is in no batch of an epoch."""
    packed_as = manifest.packed_as(domain)
    left = manifest.epochs[epoch].left_over.get(packed_as or domain, 0)
    weight = manifest.parameters.get("weights", {}).get(domain, 1)
    if not left:
        why = "these batches are older than the pair"
    elif packed_as is None:
        why = f"pack.small_domains leaves out '{domain}', which cannot fill a batch of {manifest.batch_size}"
    elif weight < 1:
        why = f"one of {left:,} that pack.weights leaves out: it takes {weight:g} of '{domain}'"
    else:
        why = f"one of {left:,} of '{packed_as}' that do not fill a batch of {manifest.batch_size}"
    return LeftOver(epoch=epoch, why=why)


def _places(shards: ShardSet, ids: Sequence[str]) -> dict[str, list[Place]]:
    packed = pa.chunked_array([batch["id"] for batch in shards.columns("id")])
    size, places = shards.manifest.batch_size, defaultdict(list)
    for at in pc.indices_nonzero(pc.is_in(packed, value_set=_strings(ids))).to_pylist():
        batch, row = divmod(at, size)
        places[packed[at].as_py()].append(Place(epoch=shards.manifest.epoch_of(batch), batch=batch, row=row))
    return places


def _strings(values: Sequence[str]) -> pa.Array:
    """Return an array of strings, without ``pa.array``, which would import pandas."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


def _dropped(artifacts: Artifacts, domain: str) -> dict[str, str]:
    """Return why pairs were dropped, and what they scored, by id."""
    ids: list[str] = artifacts.train_ids(domain).to_pylist()
    negatives = artifacts.negatives(domain, len(ids))
    return {
        ids[row]: f"{DROPPED[int(negatives.dropped[row])]}; its score is {negatives.scores[row]:.3f}"
        for row in np.flatnonzero(~negatives.kept)
    }


def find_pairs(shards: ShardSet, artifacts: Artifacts, asked: str) -> list[dict[str, str]]:
    """Return id, query, domain and, if it is known, split of the pairs that ``asked`` names.

    These are the pairs whose id begins so or, if there are none, those whose query equals it, or has all of its words;
    queries that have the words in this order come first.
    """
    tables = list(_tables(shards, artifacts))
    if _ID.fullmatch(asked) and (rows := _rows(tables, lambda pairs: pc.starts_with(pairs["id"], asked.lower()))):
        return rows
    rows = _rows(tables, lambda pairs: has_words(pairs["query"], asked))
    folded = {row["id"]: " ".join(row["query"].casefold().split()) for row in rows}
    phrase = " ".join(asked.casefold().split())
    return [row for row in rows if folded[row["id"]] == phrase] or sorted(
        rows, key=lambda row: phrase not in folded[row["id"]]
    )


def has_words(texts: pa.ChunkedArray, asked: str) -> pa.ChunkedArray:
    """Return which texts contain all words of ``asked``, in any order and case."""
    every = [pc.match_substring(texts, word, ignore_case=True) for word in asked.split()]
    return functools.reduce(pc.and_, every)


def _rows(
    tables: Iterable[tuple[str | None, pa.Table]], chosen: Callable[[pa.Table], pa.ChunkedArray]
) -> list[dict[str, str]]:
    """Return the rows ``chosen`` from tables of domains, each pair once."""
    rows = {}
    for domain, table in tables:
        for row in table.filter(chosen(table)).to_pylist():
            rows[row["id"]] = row if domain is None else {"domain": domain, **row}
    return list(rows.values())


def _tables(shards: ShardSet, artifacts: Artifacts) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield the pairs of each domain, or without them those of all batches."""
    for domain in artifacts.domains:
        yield domain, artifacts.columns(domain, "id", "query", "split")
    if not artifacts.domains:
        yield None, pa.Table.from_batches(shards.columns("id", "query", "domain"))
