"""Makes the pairs of one domain from its candidates in all parts, a range of ids at a time."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.formats.pairs import PAIRS_SCHEMA, ROWS
from pipelines.ingest.candidates import REJECTED
from pipelines.ingest.deduplicate import deduplicate
from pipelines.ingest.read import PartRead
from pipelines.ingest.screen import answers_in, screen
from pipelines.ingest.split import dev, held_out

PAIRS_FILE = "pairs.parquet"
_REJECTS_FILE = "rejects.arrow"
_PLACED = REJECTED.append(pa.field("part", pa.int32()))
_RANGE_PAIRS, _RANGE_BYTES = 65_536, 128 << 20
_IDS = 16**32  # an id is as many hex digits

Batches = list[tuple[int, pa.RecordBatch]]  # place of the part, some of its candidates, sorted by id


def write_domain(
    domain: str, parts: Sequence[PartRead], folder: Path, test_share: float, dev_share: float
) -> dict[str, Any]:
    """Write unique pairs with their split, sorted by id, and the rejects among the candidates, into ``folder``.

    Returns:
        ``counts`` of pairs by split and of unique texts, and ``pairs_of``: how many pairs each of ``parts`` gave.
    """
    batches = [(place, batch) for place, part in enumerate(parts) for batch in part.candidates(domain)]
    given = any(pc.sum(pc.list_value_length(batch["negatives"])).as_py() for _, batch in batches)
    answers = answers_in(batch for _, batch in batches) if given else None
    kept: list[pa.Table] = []
    with (
        pq.ParquetWriter(folder / PAIRS_FILE, PAIRS_SCHEMA, compression="zstd") as pairs,
        pa.ipc.new_file(folder / _REJECTS_FILE, _PLACED) as rejects,
    ):
        for candidates in _ranges(batches):
            if answers is not None:  # while each negative is still in its own row
                candidates, removed = screen(candidates, answers)
                rejects.write_table(pa.Table.from_pylist(removed, _PLACED))
            unique, duplicates = deduplicate(candidates)
            rejects.write_table(duplicates.select(_PLACED.names))
            unique = unique.append_column("split", _split(unique["query_hash"], test_share, dev_share))
            pairs.write_table(unique.select(PAIRS_SCHEMA.names).cast(PAIRS_SCHEMA), row_group_size=ROWS)
            kept.append(unique.select(["split", "part", "query_hash", "document_hash"]))
    return _counts(pa.concat_tables(kept), len(parts))


def read_rejects(folder: Path) -> pa.Table:
    """Read what ``write_domain`` rejected: ``REJECTED``, and as ``part`` its place among the parts of the domain."""
    with pa.memory_map(str(folder / _REJECTS_FILE)) as source:
        return pa.ipc.open_file(source).read_all()


def _ranges(batches: Batches) -> Iterator[pa.Table]:
    """Cut the candidates where their ids, which are hashes, are likely to make ranges of equal size."""
    pairs, size = sum(len(batch) for _, batch in batches), sum(batch.nbytes for _, batch in batches)
    count = max(math.ceil(pairs / _RANGE_PAIRS), math.ceil(size / _RANGE_BYTES))
    bounds = np.array([f"{_IDS * number // count:032x}" for number in range(1, count)], dtype="S32")
    cuts = [np.array([0, *np.searchsorted(_ids(batch), bounds), len(batch)]) for _, batch in batches]
    for number in range(count):
        yield pa.Table.from_batches(
            _placed(batch.slice(cut[number], cut[number + 1] - cut[number]), place)
            for (place, batch), cut in zip(batches, cuts, strict=True)
        )


def _ids(batch: pa.RecordBatch) -> NDArray[np.bytes_]:
    """Return the ids of a record batch ``(n,)`` without a copy."""
    ids = batch["id"]
    return np.frombuffer(ids.buffers()[2], dtype="S32")[ids.offset : ids.offset + len(ids)]


def _placed(batch: pa.RecordBatch, place: int) -> pa.RecordBatch:
    return batch.append_column("part", pa.array(np.full(len(batch), place, dtype=np.int32)))


def _split(query_hashes: pa.ChunkedArray, test_share: float, dev_share: float) -> pa.Array:
    hashes = query_hashes.to_numpy()
    is_test, is_dev = held_out(hashes, test_share), dev(hashes, dev_share)
    return pc.case_when(pc.make_struct(pa.array(is_test), pa.array(is_dev)), "test", "dev", "train")


def _counts(pairs: pa.Table, parts: int) -> dict[str, Any]:
    by_split = {split: pc.sum(pc.equal(pairs["split"], split)).as_py() for split in ("train", "dev", "test")}
    texts = {"queries": "query_hash", "documents": "document_hash"}
    unique = {name: pc.count_distinct(pairs[column]).as_py() for name, column in texts.items()}
    return {"counts": by_split | unique, "pairs_of": np.bincount(pairs["part"].to_numpy(), minlength=parts).tolist()}
