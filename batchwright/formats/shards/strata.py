"""A batch as a sample of its domain: some rows come with all that are like them, the others are drawn at random."""

import numpy as np
from numpy.typing import NDArray


def stands_for(groups: NDArray[np.integer], documents: int) -> NDArray[np.float32]:
    """Return how many of a domain's ``documents`` document j stands for as a negative of query i, ``(B, B)``.

    ``groups`` ``(B,)`` are the same for rows that were put together because they are alike. These stand for themselves;
    a row's documents from elsewhere share all that remain of the domain, and stand for one at least.
    """
    same = groups[:, None] == groups[None, :]
    own = same.sum(axis=1)
    each = np.maximum((documents - own) / np.maximum(len(groups) - own, 1), 1)
    return np.where(same, 1, each[:, None]).astype(np.float32)
