"""Measure how often pairs meet again, that is, share a batch in more than one epoch."""

from collections.abc import Mapping, Sequence

import numpy as np

from batchwright.inspect.meetings import met_before
from stages.pack.plan import Batch


def shares_met_before(batches: Sequence[Batch], pairs: Mapping[str, int], epochs: int) -> list[float]:
    """Return, for each epoch, the share of meetings of two pairs in a batch that also took place in an earlier epoch.

    ``pairs`` is the number of training pairs of each domain.
    """
    first = dict(zip(pairs, np.cumsum([0, *pairs.values()]).tolist(), strict=False))
    shares = met_before(((batch.epoch, batch.rows + first[batch.domain]) for batch in batches), sum(pairs.values()))
    of_epochs: list[list[float]] = [[] for _ in range(epochs)]
    for batch, share in zip(batches, shares, strict=True):
        of_epochs[batch.epoch].append(share)
    return [round(sum(of) / max(len(of), 1), 6) for of in of_epochs]
