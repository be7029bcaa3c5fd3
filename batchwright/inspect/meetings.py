"""Meetings: two pairs meet if they share a batch."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

NOWHERE = -1

Numbers = NDArray[np.int32]
"""The number of each pair's batch in one epoch, ``(pairs,)``, or ``NOWHERE``."""


def met_before(batches: Iterable[tuple[int, NDArray[np.int64]]], pairs: int) -> list[float]:
    """Return the share of each batch's meetings that also took place in an earlier epoch.

    ``batches`` are epochs and rows, in training order; rows are numbers of pairs below ``pairs``.
    """
    epochs: dict[int, Numbers] = {}
    shares = []
    for number, (epoch, rows) in enumerate(batches):
        shares.append(share_met(rows, [numbers for earlier, numbers in epochs.items() if earlier < epoch]))
        if epoch not in epochs:
            epochs[epoch] = np.full(pairs, NOWHERE, np.int32)
        epochs[epoch][rows] = number
    return shares


def share_met(rows: NDArray[np.int64], epochs: Sequence[Numbers]) -> float:
    """Return the share of the meetings of ``rows`` ``(B,)`` that take place in any of ``epochs``."""
    met = np.zeros((len(rows), len(rows)), dtype=bool)
    for numbers in epochs:
        of = numbers[rows]
        met |= (of[:, None] == of[None, :]) & (of != NOWHERE)[:, None]
    return float((met.sum() - np.trace(met)) / max(len(rows) * (len(rows) - 1), 1))


def batch_numbers(batches: Iterable[tuple[int, NDArray[np.int64]]], pairs: int) -> dict[int, Numbers]:
    """Return the number of each pair's batch, by epoch; ``batches`` are as ``met_before`` takes them."""
    epochs: dict[int, Numbers] = {}
    for number, (epoch, rows) in enumerate(batches):
        if epoch not in epochs:
            epochs[epoch] = np.full(pairs, NOWHERE, np.int32)
        epochs[epoch][rows] = number
    return epochs
