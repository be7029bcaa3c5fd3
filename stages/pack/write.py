"""Write the planned batches into scratch, shard by shard, so that a killed run can resume."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from batchwright.core.results import read_json, write_json
from batchwright.core.runtime import workers
from batchwright.formats.shards import Shard, shard_name, write_shard
from stages.pack.inputs import Inputs
from stages.pack.plan import Batch

Row = dict[str, Any]


def write_shards(
    batches: Sequence[Batch], inputs: Inputs, batches_per_shard: int, parts: Path
) -> tuple[list[Shard], list[Row]]:
    """Write the shards that ``parts`` does not contain yet, several at a time in threads.

    Returns:
        The shards, and one row per batch: its number, epoch, domain and measures.
    """
    starts = range(0, len(batches), batches_per_shard)

    def write(start: int) -> dict[str, Any]:
        name = shard_name(start // batches_per_shard, len(starts))
        if not _ledger(parts, name).exists():
            _write_shard(parts, name, batches[start : start + batches_per_shard], inputs)
        return read_json(_ledger(parts, name), made_by="pack")

    with ThreadPoolExecutor(workers()) as pool:
        written = list(
            tqdm(pool.map(write, starts), total=len(starts), desc="pack", unit="shard", mininterval=2, delay=2)
        )
    rows = [row for part in written for row in part["batches"]]
    return [Shard.model_validate(part["shard"]) for part in written], [
        {"batch": n, **row} for n, row in enumerate(rows)
    ]


def remove_ledgers(parts: Path) -> None:
    """Remove the ledgers from ``parts``, and files that a killed run left half written, to publish the folder."""
    for file in [*parts.glob("*.arrow.json"), *parts.glob(".*")]:
        file.unlink()


def _ledger(parts: Path, name: str) -> Path:
    return parts / f"{name}.json"


def _write_shard(parts: Path, name: str, batches: Sequence[Batch], inputs: Inputs) -> None:
    record_batches: list[pa.RecordBatch] = []
    rows: list[Row] = []
    for batch in batches:
        clusters = inputs.clusters[batch.domain][batch.draw].assignment[batch.rows]
        record_batch, measures = inputs.domains[batch.domain].batch(batch.rows, clusters)
        record_batches.append(record_batch)
        rows.append({"epoch": batch.epoch, "domain": batch.domain, **measures})
    shard = write_shard(parts / name, record_batches)
    # Written last: a shard counts as finished once its ledger exists.
    write_json(_ledger(parts, name), {"shard": shard.model_dump(), "batches": rows})
