"""What a set of batches amounts to, epoch by epoch and in all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from formats.manifest import EpochSummary

MEASURES = ("hardness", "unmasked_hardness", "masked_share")


def summarise_epochs(
    rows: Sequence[Mapping[str, Any]], pairs: Mapping[str, int], batch_size: int, epochs: int
) -> list[EpochSummary]:
    """Summaries from one row a batch (``epoch``, ``domain`` and the measures); ``pairs`` a domain."""
    summaries = []
    first = 0
    for epoch in range(epochs):
        of_epoch = [row for row in rows if row["epoch"] == epoch]
        packed = Counter(row["domain"] for row in of_epoch)
        left_over = {domain: count - packed[domain] * batch_size for domain, count in pairs.items()}
        summaries.append(
            EpochSummary(first_batch=first, batches=len(of_epoch), left_over=left_over, **mean_measures(of_epoch))
        )
        first += len(of_epoch)
    return summaries


def mean_measures(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The measures' means over batches."""
    return {name: round(sum(row[name] for row in rows) / max(len(rows), 1), 6) for name in MEASURES}
