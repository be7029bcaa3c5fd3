"""Shards with other hard negatives."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from formats.manifest import Shard
from formats.shards import SHARD, ShardSet, write_shard


def rewrite_shards(shards: ShardSet, negatives: Mapping[tuple[str, str], Sequence[str]], folder: Path) -> list[Shard]:
    """Write the batches of ``shards`` into ``folder``, each pair's hard negatives those of its domain and id."""
    written, first = [], 0
    for shard in shards.manifest.shards:
        numbers = range(first, first + shard.batches)
        batches = [_replace(shards.batch(number), negatives) for number in numbers]
        written.append(write_shard(folder / shard.name, batches))
        first += shard.batches
    return written


def _replace(batch: pa.RecordBatch, negatives: Mapping[tuple[str, str], Sequence[str]]) -> pa.RecordBatch:
    keys = zip(batch["domain"].to_pylist(), batch["id"].to_pylist(), strict=True)
    columns: dict[str, Any] = {name: batch[name] for name in SHARD.names}
    columns["negatives"] = pa.array([negatives[key] for key in keys], type=SHARD.field("negatives").type)
    return pa.record_batch(list(columns.values()), schema=SHARD)
