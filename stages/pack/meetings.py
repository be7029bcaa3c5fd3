"""Which pairs meet again: share a batch that shared one in an earlier epoch."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stages.pack.plan import Batch


def shares_met_before(batches: Sequence[Batch], pairs: Mapping[str, int], epochs: int) -> list[float]:
    """For each epoch, the share of its meetings of two pairs in a batch that took place in an earlier one, too.

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
    """The batch that each pair was in, ``(pairs,)``; -1 where it was in none, the last where it was in several."""
    numbers = np.full(pairs, -1, dtype=np.int64)
    for number, rows in enumerate(batches):
        numbers[rows] = number
    return numbers
