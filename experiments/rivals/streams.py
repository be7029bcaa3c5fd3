"""What orders have in common: a stream of batches that does not end with the epochs asked for."""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

from experiments.common.small_models import BASE
from experiments.rivals.pairs import Training

BATCH: int = BASE["pack"]["batch_size"]
Rows = NDArray[np.int64]
Order = Callable[[Training, int, int], Iterator[Rows]]
"""Takes the pairs, the number of epochs and a seed; yields batches ``(BATCH,)`` of rows, epoch after epoch."""


def steps(training: Training, epochs: int) -> int:
    """Number of batches of ``epochs`` epochs, in which each domain leaves out what does not fill a batch."""
    return epochs * sum(len(rows) // BATCH for rows in training.by_domain().values())


def chop(rows: Rows) -> Iterator[Rows]:
    """Cut rows into whole batches."""
    return (rows[end - BATCH : end] for end in range(BATCH, len(rows) + 1, BATCH))


def epoch_after_epoch(seed: int, epoch: Callable[[np.random.Generator], list[Rows]]) -> Iterator[Rows]:
    """Yield the batches of epoch after epoch, each in random order, unless an epoch has none."""
    for number in count():
        rng = np.random.default_rng([seed, number, 2])
        batches = epoch(rng)
        if not batches:
            return
        yield from (batches[place] for place in rng.permutation(len(batches)))
