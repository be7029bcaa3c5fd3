"""What query tokens retrieve at each rank: figure 4 of the XTR paper (arXiv 2304.01982)."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def shares_by_rank(
    retrieved: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]],
    asked: Sequence[NDArray[np.int64]],
    relevant: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares of lexical and of gold tokens among those retrieved at each of k ranks, ``(k,)`` each.

    A retrieved token is lexical if it equals the query token, and gold if it belongs to a relevant document.

    Args:
        retrieved: For each query, the ids of the tokens that its n tokens retrieved and the numbers of their documents,
            ``(n, k)`` each.
        asked: For each query, the ids of its n tokens.
        relevant: For each query, the numbers of its relevant documents.
    """
    lexical, gold = [], []
    for (ids, documents), own, wanted in zip(retrieved, asked, relevant, strict=True):
        lexical.append(ids == own[:, None])
        gold.append(np.isin(documents, wanted))
    return np.concatenate(lexical).mean(axis=0), np.concatenate(gold).mean(axis=0)
