"""Pairs with vectors, some with planted topics."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.vectors import PairVectors
from tests.helpers import planted_vectors, topic_pairs


def pair_vectors(queries: NDArray[Any], documents: NDArray[Any]) -> PairVectors:
    """Vectors of pairs ``(N, d)``, ``(N, d)``."""
    rows = np.arange(2 * len(queries)).reshape(2, -1)
    return PairVectors(vectors=np.concatenate([queries, documents]).astype(np.float16), rows=rows)


def planted(pairs: int, topics: int) -> tuple[PairVectors, NDArray[np.int64]]:
    """Pairs, and the topic of each."""
    queries, documents = zip(*topic_pairs(pairs, topics), strict=True)
    truth = np.array([int(query.split()[0].removeprefix("topic")) for query in queries])
    return pair_vectors(planted_vectors(list(queries)), planted_vectors(list(documents))), truth
