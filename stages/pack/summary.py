"""Summarise batches: overall, by epoch and by domain."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.shards import REASONS, EpochSummary
from stages.pack.meetings import shares_met_before
from stages.pack.plan import Batch

Row = Mapping[str, Any]
COUNTS = ("rows_mostly_masked", "judge_asked", "judge_masked")


def summarise_epochs(
    batches: Sequence[Batch], rows: Sequence[Row], pairs: Mapping[str, NDArray[np.bool_]], epochs: int
) -> list[EpochSummary]:
    """Summarise each epoch of the planned ``batches``.

    ``rows`` holds the measures of each batch. ``pairs`` marks the training pairs of each domain that the filter kept.
    """
    met_before = shares_met_before(batches, {domain: len(kept) for domain, kept in pairs.items()}, epochs)
    summaries = []
    first = 0
    for epoch in range(epochs):
        of_epoch = [row for batch, row in zip(batches, rows, strict=True) if batch.epoch == epoch]
        times = _times_packed([batch for batch in batches if batch.epoch == epoch], pairs)
        summaries.append(
            EpochSummary(
                first_batch=first,
                batches=len(of_epoch),
                left_over={domain: int((pairs[domain] & (own == 0)).sum()) for domain, own in times.items()},
                repeated=int(sum(np.maximum(own - 1, 0).sum() for own in times.values())),
                met_before=met_before[epoch],
                **mean_measures(of_epoch),
            )
        )
        first += len(of_epoch)
    return summaries


def _times_packed(batches: Sequence[Batch], pairs: Mapping[str, NDArray[np.bool_]]) -> dict[str, NDArray[np.int64]]:
    times = {domain: np.zeros(len(kept), dtype=np.int64) for domain, kept in pairs.items()}
    for batch in batches:
        times[batch.domain][batch.rows] += 1
    return times


def summarise_domains(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the number of batches, the totals and the mean measures of each domain."""
    by_domain = defaultdict(list)
    for row in rows:
        by_domain[row["domain"]].append(row)
    return {domain: {"batches": len(own), **totals(own), **mean_measures(own)} for domain, own in by_domain.items()}


def totals(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many rows are mostly masked and, if there is a judge, how many cells it was asked about and masked."""
    return {name: sum(row[name] for row in rows) for name in COUNTS if any(name in row for row in rows)}


def mean_measures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the mean of each measure over batches, including the masked share by reason."""
    means = {name: _mean(rows, name) for name in ("hardness", "unmasked_hardness", "masked_share")}
    return {**means, "masked_by": {reason: _mean(rows, f"masked_{reason}") for reason in REASONS}}


def _mean(rows: Sequence[Row], name: str) -> float:
    return round(float(sum(row[name] for row in rows)) / max(len(rows), 1), 6)
