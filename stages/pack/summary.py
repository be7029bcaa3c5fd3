"""What came of packing: measures of batches by epoch and by domain, and warnings."""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from batchwright.core.messages import safe
from batchwright.core.paths import RESULTS
from batchwright.formats.shards import REASONS, EpochSummary, Manifest

OUTPUT = RESULTS / "pack"
_COUNTS = ("rows_mostly_masked", "judge_asked", "judge_masked")
MOSTLY = 0.9
"""A domain is named if more than this share of its negatives is masked."""
MANY = 0.01
"""A domain is named if more than this share of its rows have more than half of their negatives masked."""

Row = Mapping[str, Any]
"""Measures of a batch."""
Domains = Mapping[str, Mapping[str, Any]]
"""What ``make_batches`` returned of each domain."""


def summarise(manifest: Manifest, rows: Sequence[Row], domains: Domains) -> dict[str, Any]:
    """Summarise all batches, given the measures of each in ``rows``: overall, and by domain with its recipe."""
    left_over = sum(sum(epoch.left_over.values()) for epoch in manifest.epochs)
    counts = {"batches": manifest.batches, "pairs": manifest.rows, "left_over": left_over, **_totals(rows)}
    summaries = _summarise_domains(rows)
    of_domains = {name: summary | domains[name]["recipe"] for name, summary in summaries.items()}
    return {**counts, **_mean_measures(rows), "domains": of_domains}


def summarise_epochs(rows: Sequence[Row], domains: Domains, epochs: int) -> list[EpochSummary]:
    """Summarise each epoch; ``rows`` holds the measures of each batch, in training order."""
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
                **_mean_measures(of_epoch),
            )
        )
    return summaries


def _summarise_domains(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the number of batches, the totals and the mean measures of each domain."""
    by_domain = defaultdict(list)
    for row in rows:
        by_domain[row["domain"]].append(row)
    return {
        domain: {"batches": len(batches), **_totals(batches), **_mean_measures(batches)}
        for domain, batches in by_domain.items()
    }


def _totals(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many rows are mostly masked and, if there is a judge, how many cells it was asked about and masked."""
    return {name: sum(row[name] for row in rows) for name in _COUNTS if any(name in row for row in rows)}


def _mean_measures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the mean of each measure over batches, including the masked share by reason."""
    means = {name: _mean(rows, name) for name in ("hardness", "unmasked_hardness", "masked_share")}
    return {**means, "masked_by": {reason: _mean(rows, f"masked_{reason}") for reason in REASONS}}


def _mean(rows: Sequence[Row], name: str) -> float:
    return round(float(sum(row[name] for row in rows)) / max(len(rows), 1), 6)


def never_hard(domains: Domains) -> str:
    """Say which domains ``cluster_share: auto`` gives random batches only, and why for the first of them."""
    recipes = {name: domain["recipe"] for name, domain in domains.items()}
    reasons = {
        name: recipe["because"] for name, recipe in recipes.items() if recipe and not any(recipe["cluster_share"])
    }
    if not reasons:
        return ""
    name, reason = next(iter(reasons.items()))
    others = f" and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
    return f"; random batches only for '{safe(name)}'{others}: {reason}"


def warn_of_masked(policy: str, domains: Mapping[str, Mapping[str, Any]], batch_size: int) -> None:
    """Warn of domains that masks leave little of; ``domains`` are their measures."""
    for domain, measures in domains.items():
        rows, lost = measures["batches"] * batch_size, measures["rows_mostly_masked"]
        if measures["masked_share"] > MOSTLY:
            masked = f"{measures['masked_share'] * 100:.0f}% of the negatives of '{domain}' are masked"
            _warn(policy, f"{masked}, so it adds next to nothing to training")
        elif lost > MANY * rows:
            masked = f"{lost:,} of {rows:,} rows of '{domain}' have more than half of their negatives masked"
            _warn(policy, f"{masked}, so they add little to training")


def _warn(policy: str, what: str) -> None:
    look = f"batchwright show --worst masked --shards {policy}"
    print(
        f"pack: warning: {safe(what)}; the reasons are in {OUTPUT}/{policy}.json; see them with {look}", file=sys.stderr
    )
