"""A shard set at a glance: measures of all its batches by domain and epoch, and the batches that stand out."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.formats.shards import NAMES, REASONS, ShardSet
from batchwright.formats.shards.batch import met_before
from batchwright.inspect.batch import mean_hardness
from batchwright.inspect.evidence import OLD

SHOWN = 10
"""Batches that are named as the worst."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A batch: ``hardness`` is the mean over unmasked negatives, ``unusual`` by how much it is above the mean of the
    domain's batches in the same epoch. ``masked_by`` are shares of the negatives, ``rows_mostly_masked`` are the rows
    with more than half of their negatives masked."""

    batch: int
    epoch: int
    domain: str
    hardness: float
    unusual: float
    masked_share: float
    masked_by: dict[str, float]
    rows_mostly_masked: int


@dataclass(frozen=True, kw_only=True)
class Worst(Measured):
    """One of the worst batches; ``met_before`` is the share of its meetings that took place in an earlier epoch too."""

    met_before: float


ORDERS: dict[str, Callable[[Worst], float]] = {
    "easiest": lambda batch: batch.unusual,
    "hardest": lambda batch: -batch.unusual,
    "masked": lambda batch: -batch.masked_share,
    "repeated": lambda batch: -batch.met_before,
}
"""By what batches are worst: easier or harder than the others of their domain and epoch, masked, or repeated."""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A shard set, and the number of batches and mean measures of each domain and epoch."""

    shards: str
    policy: str
    batch_size: int
    batches: int
    epochs: int
    seed: int
    left_over: list[int]
    met_before: list[float]
    domains: list[dict[str, str | int | float]]


def overview(shards: ShardSet) -> Overview:
    """Summarise a shard set."""
    manifest = shards.manifest
    groups = by_domain(measure(shards))
    return Overview(
        shards=str(shards.folder),
        policy=manifest.policy,
        batch_size=manifest.batch_size,
        batches=manifest.batches,
        epochs=len(manifest.epochs),
        seed=manifest.seed,
        left_over=[sum(epoch.left_over.values()) for epoch in manifest.epochs],
        met_before=[epoch.met_before for epoch in manifest.epochs],
        domains=[
            {
                **{"domain": domain, "epoch": epoch, "batches": len(group), "first_batch": group[0].batch},
                **{**means(group), "rows_mostly_masked": sum(batch.rows_mostly_masked for batch in group)},
            }
            for (domain, epoch), group in groups.items()
        ],
    )


def worst(shards: ShardSet, by: str) -> list[Worst]:
    """Return the batches that are worst ``by`` one of ``ORDERS``.

    Raises:
        InputError: the shards do not say how hard their rows are.
    """
    if shards.manifest.format == 1 and by in ("easiest", "hardest"):
        raise InputError(f"{shards.folder}: does not say how hard batches are: {OLD}")
    read = list(shards.columns("id"))
    numbers = pc.dictionary_encode(pa.chunked_array([batch["id"] for batch in read]).combine_chunks())
    rows = np.split(_integers(numbers.indices), np.cumsum([batch.num_rows for batch in read])[:-1])
    measured = measure(shards)
    before = met_before(zip((batch.epoch for batch in measured), rows, strict=True), len(numbers.dictionary))
    batches = [Worst(**vars(batch), met_before=round(met, 6)) for batch, met in zip(measured, before, strict=True)]
    return sorted(batches, key=ORDERS[by])[:SHOWN]


def measure(shards: ShardSet) -> list[Measured]:
    """Measure every batch."""
    read = list(shards.columns("domain", "hardness", "masked_share", "reasons"))
    domains = [shards.domain_of(batch) for batch in read]
    epochs = [shards.manifest.epoch_of(number) for number in range(len(read))]
    hardness = [_hardness(batch) for batch in read]
    usual = defaultdict(list)
    for number, value in enumerate(hardness):
        usual[epochs[number], domains[number]].append(value)
    return [
        Measured(
            batch=number,
            epoch=epochs[number],
            domain=domains[number],
            hardness=hardness[number],
            unusual=round(hardness[number] - float(np.mean(usual[epochs[number], domains[number]])), 6),
            masked_share=round(sum(shares.values()), 6),
            masked_by=shares,
            rows_mostly_masked=sum(share > 0.5 for share in read[number]["masked_share"].to_pylist()),
        )
        for number, shares in enumerate(map(_masked_by, read))
    ]


def means(batches: Sequence[Measured]) -> dict[str, float]:
    """Return the mean hardness and masked share of batches."""
    return {
        name: round(sum(getattr(batch, name) for batch in batches) / max(len(batches), 1), 6)
        for name in ("hardness", "masked_share")
    }


def by_domain(batches: Sequence[Measured]) -> dict[tuple[str, int], list[Measured]]:
    """Group batches by domain and epoch, in this order."""
    groups: dict[tuple[str, int], list[Measured]] = defaultdict(list)
    for batch in sorted(batches, key=lambda batch: (batch.domain, batch.epoch)):
        groups[batch.domain, batch.epoch].append(batch)
    return groups


def _hardness(batch: pa.RecordBatch) -> float:
    return mean_hardness(*(np.array(batch[name].to_pylist(), np.float32) for name in ("hardness", "masked_share")))


def _masked_by(batch: pa.RecordBatch) -> dict[str, float]:
    counts = Counter(b"".join(batch["reasons"].to_pylist()))
    negatives = batch.num_rows * (batch.num_rows - 1)
    return {name: counts[code] / negatives for code, name in enumerate(NAMES) if name in REASONS or counts[code]}


def _integers(indices: pa.Array) -> NDArray[np.int64]:
    return np.frombuffer(indices.buffers()[1], np.int32, len(indices), offset=4 * indices.offset).astype(np.int64)
