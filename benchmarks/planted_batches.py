"""Generated shards: batches whose masks name each reason, and a manifest without measures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from batchwright.formats.shards import (
    REASONS,
    SHARD_SCHEMA,
    EpochSummary,
    Manifest,
    pack_mask,
    pack_reasons,
    shard_name,
    write_shard,
)
from batchwright.formats.shards.shard_set import SCHEMAS

SEED = 17
_MEASURES: dict[str, Any] = {"hardness": 0.0, "unmasked_hardness": 0.0, "masked_share": 0.0, "masked_by": {}}


def make_batch(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Return a batch of some pairs, in which the first rows mask their neighbour, for each reason in turn."""
    size = len(rows)
    mask = np.zeros((size, size), bool)
    first = np.arange(min(len(REASONS), size - 1))
    mask[first, first + 1] = True
    reasons = pack_reasons(first.astype(np.uint8), mask)
    shares = (mask.sum(axis=1) / (size - 1)).tolist()
    own = [
        row | {"mask": bits, "reasons": why, "hardness": number / size, "masked_share": share}
        for number, (row, bits, why, share) in enumerate(zip(rows, pack_mask(mask), reasons, shares, strict=True))
    ]
    return pa.RecordBatch.from_pylist(own, schema=SHARD_SCHEMA)


def write_batches(folder: Path, batches: Sequence[pa.RecordBatch], epochs: int, shards: int = 1) -> None:
    """Write batches of one size, evenly to ``epochs`` and ``shards``, and a manifest without measures."""
    folder.mkdir(parents=True, exist_ok=True)
    each, size, most = len(batches) // epochs, len(batches[0]), -(-len(batches) // shards)
    parts = [batches[start : start + most] for start in range(0, len(batches), most)]
    summaries = [
        EpochSummary(first_batch=epoch * each, batches=each, left_over={}, repeated=0, met_before=0.0, **_MEASURES)
        for epoch in range(epochs)
    ]
    Manifest(
        format=1 if batches[0].schema == SCHEMAS[1] else 2,
        policy="contextual",
        batch_size=size,
        rows=len(batches) * size,
        batches=len(batches),
        seed=SEED,
        documents={name: len(texts) for name, texts in _documents(batches).items()},
        cluster_shares={name: [0.5 * (epoch % 2) for epoch in range(epochs)] for name in _documents(batches)},
        parameters={},
        models={},
        epochs=summaries,
        shards=[write_shard(folder / shard_name(number, len(parts)), part) for number, part in enumerate(parts)],
    ).write(folder)


def _documents(batches: Sequence[pa.RecordBatch]) -> dict[str, set[str]]:
    """The different documents of each domain."""
    found: dict[str, set[str]] = {}
    for batch in batches:
        for domain, document in zip(batch["domain"].to_pylist(), batch["document"].to_pylist(), strict=True):
            found.setdefault(domain, set()).add(document)
    return found
