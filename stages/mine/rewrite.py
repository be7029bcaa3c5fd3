"""Shards with other hard negatives."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.formats.shards import SHARD_SCHEMA, Shard, ShardSet, write_shard
from stages.negatives.choice import NONE


class Mined:
    """The hard negatives mined for a domain's pairs, whose ``ids`` ``(N,)`` are sorted.

    ``rows`` ``(N, count)`` holds the rows of the ``documents`` mined for each pair, padded with -1.
    """

    def __init__(self, ids: NDArray[np.bytes_], documents: pa.LargeStringArray, rows: NDArray[np.int32]) -> None:
        self._ids, self._documents, self._rows = ids, documents, rows

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
    return batch.set_column(batch.schema.get_field_index(field.name), field, texts)


def _mined(negatives: Mapping[str, Mined], domain: str, pair: str, folder: Path) -> list[str]:
    texts = negatives[domain].of(pair) if domain in negatives else None
    if texts is None:
        raise InputError(f"{folder}: pair {pair} of domain '{domain}' is no training pair; run the stage 'pack' again")
    return texts
