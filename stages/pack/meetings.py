"""Measure how often pairs meet again, that is, share a batch in more than one epoch."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stages.pack.plan import Batch


def shares_met_before(batches: Sequence[Batch], pairs: Mapping[str, int], epochs: int) -> list[float]:
    """Return, for each epoch, the share of meetings of two pairs in a batch that also took place in an earlier epoch.

    ``pairs`` is the number of training pairs of each domain.
    """
    earlier: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    shares = []
    for epoch in range(epochs):
        of_epoch = [batch for batch in batches if batch.epoch == epoch]
        again = [_share_met(batch.rows, earlier[batch.domain]) for batch in of_epoch]
        shares.append(round(sum(again) / max(len(again), 1), 6))
        for domain, count in pairs.items():
            earlier[domain].append(_numbers([batch.rows for batch in of_epoch if batch.domain == domain], count))
    return shares


def _share_met(rows: NDArray[np.int64], earlier: Sequence[NDArray[np.int64]]) -> float:
    met = np.zeros((len(rows), len(rows)), dtype=bool)
    for numbers in earlier:
        of = numbers[rows]
        met |= (of[:, None] == of[None, :]) & (of >= 0)[:, None]
    return float((met.sum() - np.trace(met)) / max(len(rows) * (len(rows) - 1), 1))


def _numbers(batches: Sequence[NDArray[np.int64]], pairs: int) -> NDArray[np.int64]:
    """Return each pair's batch number, ``(pairs,)``: the last one if it was in several batches, -1 if in none."""
    numbers = np.full(pairs, -1, dtype=np.int64)
    for number, rows in enumerate(batches):
        numbers[rows] = number
    return numbers
