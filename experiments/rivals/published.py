"""Orders that others have published."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.batches.methods import Batching
from experiments.rivals.b3 import communities
from experiments.rivals.merrick import sources
from experiments.rivals.pairs import Training
from experiments.rivals.streams import BATCH, Rows, chop, epoch_after_epoch


def once(batching: Batching, training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Batches that are made once for each domain and repeated every epoch in another order."""
    batches = _made_once(batching, training)
    return epoch_after_epoch(seed, lambda _: list(batches))


def b3(training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Batches of random communities of their domain (B3, arXiv 2505.11293)."""

    def epoch(rng: np.random.Generator) -> list[Rows]:
        shuffled = [[groups[place] for place in rng.permutation(len(groups))] for groups in communities_of]
        return [batch for groups in shuffled for batch in chop(np.concatenate(groups))]

    communities_of = _communities(training, seed)
    return epoch_after_epoch(seed, epoch)


def merrick(training: Training, _: int, seed: int) -> Iterator[Rows]:
    """Random batches of one of a domain's ten clusters (Merrick, arXiv 2407.18887)."""
    groups = [
        rows[part] for rows in training.by_domain().values() for part in sources(training.vectors.take(rows), seed)
    ]
    return epoch_after_epoch(seed, lambda rng: [batch for group in groups for batch in chop(rng.permutation(group))])


@lru_cache(maxsize=8)
def _made_once(batching: Batching, training: Training) -> NDArray[np.int64]:
    """Batches ``(n, BATCH)`` of all domains; made with the same seed whichever the run's seed is."""
    return np.concatenate(
        [rows[batching(training.vectors.take(rows), BATCH)[0]] for rows in training.by_domain().values()]
    )


@lru_cache(maxsize=8)
def _communities(training: Training, seed: int) -> list[list[Rows]]:
    """The communities of each domain."""
    return [
        [rows[part] for part in communities(training.vectors.take(rows), seed)]
        for rows in training.by_domain().values()
    ]
