"""What batches are like: their hardness, by the surrogate."""

from collections.abc import Sequence

import numpy as np

from experiments.rivals.masks import known, margin
from experiments.rivals.pairs import Training
from experiments.rivals.training import Batch


def describe(training: Training, batches: Sequence[Batch]) -> dict[str, float]:
    """Means over the batches of the second half of training, when schedules are at their hardest.

    ``hardness`` is the mean surrogate score of negatives that are no known positives or duplicates, ``above_own`` the
    share of these that score higher than the query's own document, and ``masked`` the share of all negatives that a
    margin of .05 would mask: a measure of doubt, not what the arms mask.
    """
    rules = known(training), margin(training)
    found = []
    for batch in batches[len(batches) // 2 :: 4]:
        scores = training.vectors.queries(batch.rows) @ training.vectors.documents(batch.rows).T
        negative = ~np.eye(len(scores), dtype=np.bool_)
        masked = rules[1](batch.rows)[negative].mean()
        honest = negative & ~rules[0](batch.rows)
        above = (scores > scores.diagonal()[:, None])[honest]
        found.append((scores[honest].mean(), above.mean(), masked))
    return dict(zip(("hardness", "above_own", "masked"), np.mean(found, axis=0).tolist(), strict=True))
