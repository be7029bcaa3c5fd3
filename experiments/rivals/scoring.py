"""nDCG@10 of held-out queries."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

DEPTH = 10
DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))


def best_documents(queries: NDArray[np.float32], documents: NDArray[np.float32]) -> NDArray[np.int64]:
    """The places of each query's best documents, best first, ``(Q, DEPTH)``."""
    scores = torch.from_numpy(queries) @ torch.from_numpy(documents).T
    found: NDArray[np.int64] = scores.topk(DEPTH).indices.numpy()
    return found


def ndcg(ranked: NDArray[np.int64], relevant: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """nDCG@10 of each query ``(Q,)``; all relevant documents are equally so."""
    width = int(ranked.max()) + 1
    codes = [query * width + place for query, places in enumerate(relevant) for place in places if place < width]
    hit = np.isin(np.arange(len(ranked))[:, None] * width + ranked, codes)
    ideal = np.cumsum(DISCOUNTS)[[min(len(places), DEPTH) - 1 for places in relevant]]
    scores: NDArray[np.float32] = (hit @ DISCOUNTS / ideal).astype(np.float32)
    return scores
