"""What query tokens retrieve, rank by rank: figure 4 of the paper (arXiv 2304.01982)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainers.xtr.encode import TokenVectors
from trainers.xtr.index import TokenIndex


def shares_by_rank(
    index: TokenIndex, queries: TokenVectors, ids: NDArray[np.int64], relevant: Sequence[NDArray[np.int64]], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of the tokens retrieved at each of the first ``k`` ranks, ``(k,)``: how many are the query's token itself, and
    how many belong to a relevant document.

    ``ids`` ``(T,)`` are the token ids of what is indexed, ``relevant`` the numbers of each query's documents.
    """
    k = min(k, len(index))
    own_ids = np.split(queries.ids, np.cumsum(queries.lengths)[:-1])
    lexical, gold, rows = np.zeros(k), np.zeros(k), 0
    found = index.retrieve(queries.vectors, queries.lengths, k)
    for (_, numbers), own, wanted in zip(found, own_ids, relevant, strict=True):
        lexical += ((ids[numbers] == own[:, None]) & (numbers >= 0)).sum(axis=0)
        gold += np.isin(index.owners_of(numbers), wanted).sum(axis=0)
        rows += len(numbers)
    return lexical / max(rows, 1), gold / max(rows, 1)
