"""What query tokens retrieve, rank by rank: figure 4 of the paper on XTR (arXiv 2304.01982)."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def shares_by_rank(
    retrieved: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]],
    asked: Sequence[NDArray[np.int64]],
    relevant: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of the tokens retrieved at each of k ranks, ``(k,)``: how many are the query's token itself, and how many belong
    to a relevant document.

    For each query, ``retrieved`` holds the ids of the tokens that each of its n tokens retrieved, and the numbers of
    their documents, ``(n, k)`` each; ``asked`` the ids of those n tokens, and ``relevant`` the documents' numbers.
    """
    lexical, gold = [], []
    for (ids, documents), own, wanted in zip(retrieved, asked, relevant, strict=True):
        lexical.append(ids == own[:, None])
        gold.append(np.isin(documents, wanted))
    return np.concatenate(lexical).mean(axis=0), np.concatenate(gold).mean(axis=0)
