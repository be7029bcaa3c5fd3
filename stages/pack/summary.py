"""Summarise batches: overall, by epoch and by domain."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from batchwright.formats.shards import REASONS, EpochSummary

Row = Mapping[str, Any]
COUNTS = ("rows_mostly_masked", "judge_asked", "judge_masked")


def summarise_epochs(rows: Sequence[Row], domains: Mapping[str, Mapping[str, Any]], epochs: int) -> list[EpochSummary]:
    """Summarise each epoch.

    ``rows`` holds the measures of each batch, in training order, and ``domains`` what ``make_batches`` returned.
    """
    summaries: list[EpochSummary] = []
    for epoch in range(epochs):
        of_epoch = [row for row in rows if row["epoch"] == epoch]
        summaries.append(
            EpochSummary(
                first_batch=sum(summary.batches for summary in summaries),
                batches=len(of_epoch),
                left_over={name: domain["left_over"][epoch] for name, domain in domains.items()},
                repeated=sum(domain["repeated"][epoch] for domain in domains.values()),
                met_before=_mean(of_epoch, "met_before"),
                **mean_measures(of_epoch),
            )
        )
    return summaries


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
