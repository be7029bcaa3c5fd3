"""Shards with other hard negatives."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.spill import slices, spilled_texts
from batchwright.formats.shards import SHARD_SCHEMA, Shard, ShardSet, unscored, write_shard
from stages.negatives.choice import NONE

_ROWS, _DOCUMENTS = "negatives.npy", "documents.arrow"


def write_mined(folder: Path, rows: NDArray[np.int32], documents: pa.LargeStringArray) -> None:
    """Write into ``folder`` which of ``documents`` are mined for each pair: ``rows`` ``(N, count)``, padded with -1."""
    used = np.unique(rows[rows != NONE])
    taken = spilled_texts(documents.take(pa.array(used[block])) for block in slices(len(used)))
    batch = pa.record_batch({"document": taken})
    with pa.ipc.new_file(str(folder / _DOCUMENTS), batch.schema) as written:
        written.write_batch(batch)
    np.save(folder / _ROWS, np.where(rows == NONE, NONE, np.searchsorted(used, rows)).astype(np.int32))


class Mined:
    """The hard negatives that ``write_mined`` wrote for a domain's pairs, whose ``ids`` ``(N,)`` are sorted."""

    def __init__(self, ids: NDArray[np.bytes_], folder: Path) -> None:
        self._ids, self._rows = ids, np.load(folder / _ROWS)
        with pa.memory_map(str(folder / _DOCUMENTS)) as source:  # stays mapped when its handle is closed
            self._documents = pa.ipc.open_file(source).get_batch(0)["document"]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._rows)

    def of(self, pair: str) -> list[str] | None:
        """Return the documents mined for the pair with this id, or None if there is no such pair."""
        place = int(np.searchsorted(self._ids, pair.encode()))
        if place == len(self) or self._ids[place] != pair.encode():
            return None
        rows = self._rows[place]
        texts: list[str] = self._documents.take(pa.array(rows[rows != NONE])).to_pylist()
        return texts


def rewrite_shards(shards: ShardSet, negatives: Mapping[str, Mined], folder: Path) -> list[Shard]:
    """Write ``shards`` to ``folder`` with other hard negatives: those in ``negatives``, which is keyed by domain.

    Raises:
        InputError: a pair of the shards is not among those that negatives were mined for.
    """
    written, first = [], 0
    for shard in shards.manifest.shards:
        numbers = range(first, first + shard.batches)
        batches = [_replace(shards.batch(number), negatives, shards.folder) for number in numbers]
        written.append(write_shard(folder / shard.name, batches))
        first += shard.batches
    return written


def _replace(batch: pa.RecordBatch, negatives: Mapping[str, Mined], folder: Path) -> pa.RecordBatch:
    keys = zip(batch["domain"].to_pylist(), batch["id"].to_pylist(), strict=True)
    field = SHARD_SCHEMA.field("negatives")
    texts = pa.array([_mined(negatives, domain, pair, folder) for domain, pair in keys], type=field.type)
    batch = unscored(batch)  # a teacher's scores are of other negatives
    return batch.set_column(batch.schema.get_field_index(field.name), field, texts)


def _mined(negatives: Mapping[str, Mined], domain: str, pair: str, folder: Path) -> list[str]:
    texts = negatives[domain].of(pair) if domain in negatives else None
    if texts is None:
        raise InputError(f"{folder}: pair {pair} of domain '{domain}' is no training pair; run the stage 'pack' again")
    return texts
