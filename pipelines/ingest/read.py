"""Reads one part of a source into Arrow files of candidates and rejects, which later runs find until the part changes.

Candidates are valid pairs that may still be duplicates; both they and rejects say which row they come from. What the
source says a pair's split to be is ``stated``: a place in ``SPLITS``, or ``NOT_STATED``. Its ``group`` may be empty.
"""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.by_domain.kept import keep, kept
from batchwright.core.atomic import atomic_file
from batchwright.core.fingerprint import content_id, text_keys
from batchwright.core.normal_form import normal_forms
from batchwright.formats.pairs import Split
from pipelines.ingest.normalise import Pair, RowError, excerpt, normalise
from pipelines.ingest.sources.base import Part, Row, Source

_ORIGIN = [pa.field("source", pa.large_string()), pa.field("row", pa.int64())]

CANDIDATES = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("query", pa.large_string()),
        pa.field("document", pa.large_string()),
        pa.field("domain", pa.string()),
        pa.field("negatives", pa.large_list(pa.large_string())),
        pa.field("scores", pa.large_list(pa.float32())),
        pa.field("query_hash", pa.uint64()),
        pa.field("document_hash", pa.uint64()),
        pa.field("stated", pa.int8()),
        pa.field("group", pa.large_string()),
        pa.field("weight", pa.float32()),
        pa.field("metadata", pa.large_string()),
        *_ORIGIN,
    ]
)

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
NOT_STATED = -1

REJECTED = pa.schema([*_ORIGIN, pa.field("reason", pa.string()), pa.field("text", pa.large_string())])

_CANDIDATES_FILE, _REJECTS_FILE = "candidates.arrow", "rejects.arrow"
CHUNK_ROWS, CHUNK_CHARACTERS = 32_768, 32 << 20
"""Rows are sorted by domain and id in chunks, each of which ends as soon as it has so many of either."""


@dataclass(frozen=True, kw_only=True)
class PartRead:
    """What became of a part with so many ``rows``."""

    folder: Path
    rows: int
    pieces: dict[str, dict[str, Any]]
    """By domain: ``batches``, their numbers in the file of candidates, ``rows`` and ``digest`` of their content."""

    def candidates(self, domain: str) -> list[pa.RecordBatch]:
        """Open the candidates of a domain, memory-mapped; each record batch is sorted by id."""
        with pa.memory_map(str(self.folder / _CANDIDATES_FILE)) as source:  # stays mapped when its handle is closed
            reader = pa.ipc.open_file(source)
            return [reader.get_batch(number) for number in self.pieces[domain]["batches"]]

    def rejects(self) -> pa.Table:
        """Read the rejects."""
        with pa.memory_map(str(self.folder / _REJECTS_FILE)) as source:
            return pa.ipc.open_file(source).read_all()


def read_part(source: Source, part: Part, folder: Path, check_unchanged: Callable[[], None]) -> None:
    """Read all rows of a part into files in ``folder``, which is named after what the part's files held before.

    Raises:
        InputError: the part cannot be read, or ``check_unchanged`` says that it changed meanwhile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    batches: dict[str, list[int]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    digests: dict[str, Any] = defaultdict(hashlib.sha256)
    total, numbers = 0, itertools.count()
    with (
        atomic_file(folder / _CANDIDATES_FILE, durable=False) as good,
        atomic_file(folder / _REJECTS_FILE, durable=False) as bad,
        pa.ipc.new_file(good, CANDIDATES) as candidates,  # uncompressed, so that they can be memory-mapped
        pa.ipc.new_file(bad, REJECTED) as rejects,
    ):
        for rows in _chunks(source.rows(part)):
            total += len(rows)
            pairs, rejected = sift(rows)
            rejects.write_batch(rejected)
            for batch in _by_domain(pairs):
                candidates.write_batch(batch)
                domain = batch["domain"][0].as_py()
                batches[domain].append(next(numbers))
                sizes[domain] += len(batch)
                digests[domain].update(batch.serialize())
    pieces = {
        domain: {"batches": places, "rows": sizes[domain], "digest": digests[domain].hexdigest()}
        for domain, places in batches.items()
    }
    check_unchanged()  # before the part counts as read: a kill may come between
    keep(ledger(folder), _files(folder), {"rows": total, "pieces": pieces})


def find_part(folder: Path) -> PartRead | None:
    """Return what ``read_part`` left in ``folder``, or None if it did not finish or the files are damaged."""
    values = kept(ledger(folder), _files(folder))
    return PartRead(folder=folder, **values) if values else None


def ledger(folder: Path) -> Path:
    """The file that says that a part has been read."""
    return folder / "ledger.json"


def _files(folder: Path) -> list[Path]:
    return [folder / _CANDIDATES_FILE, folder / _REJECTS_FILE]


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    characters = 0
    for row in rows:
        chunk.append(row)
        values = (row.query, row.document, *row.negatives, *row.metadata.values())
        characters += sum(len(value) for value in values if isinstance(value, str))
        if len(chunk) >= CHUNK_ROWS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def sift(rows: Iterable[Row]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Sort raw rows into ``CANDIDATES`` and ``REJECTED``."""
    pairs: list[tuple[Pair, Row]] = []
    rejects: list[tuple[str, Row]] = []
    for row in rows:
        try:
            pairs.append((normalise(row), row))
        except RowError as error:
            rejects.append((str(error), row))
    good = {
        "id": [content_id(pair.domain, pair.query, pair.document) for pair, _ in pairs],
        "query": [pair.query for pair, _ in pairs],
        "document": [pair.document for pair, _ in pairs],
        "domain": [pair.domain for pair, _ in pairs],
        "negatives": [pair.negatives for pair, _ in pairs],
        "scores": [pair.scores for pair, _ in pairs],
        "query_hash": _hashes(normal_forms([pair.query for pair, _ in pairs])),
        "document_hash": _hashes([pair.document for pair, _ in pairs]),
        "stated": [NOT_STATED if pair.split is None else SPLITS.index(pair.split) for pair, _ in pairs],
        "group": [pair.group for pair, _ in pairs],
        "weight": [pair.weight for pair, _ in pairs],
        "metadata": [pair.metadata for pair, _ in pairs],
        **_origin([row for _, row in pairs]),
    }
    bad = {
        **_origin([row for _, row in rejects]),
        "reason": [reason for reason, _ in rejects],
        "text": [excerpt(row) for _, row in rejects],
    }
    return pa.RecordBatch.from_pydict(good, CANDIDATES), pa.RecordBatch.from_pydict(bad, REJECTED)


def _origin(rows: list[Row]) -> dict[str, object]:
    return {"source": [row.source for row in rows], "row": [row.number for row in rows]}


def _hashes(texts: list[str]) -> NDArray[np.uint64]:
    """64 bits of each text's key; the probability of any collision among a billion texts is about 3 %."""
    hashes: NDArray[np.uint64] = text_keys(texts).view("<u8")[::2]
    return hashes


def _by_domain(pairs: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Sort pairs by domain and id, and split them into record batches of one domain each.

    They are copies, since the bytes of a slice depend on what is around it.
    """
    order = pc.sort_indices(pairs, [("domain", "ascending"), ("id", "ascending")])
    ends = pc.run_end_encode(pairs["domain"].take(order)).run_ends.to_pylist()
    for start, end in itertools.pairwise([0, *ends]):
        yield pairs.take(order[start:end])
