"""Find pairs whose own document scores no higher than a document drawn at random would."""

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.vectors import PairVectors, blocks

SAMPLE = 512
"""Documents drawn from the domain."""
SHARE = 0.2
"""A pair is doubtful if at least this share of them scores as high as its own document."""


def doubtful(
    vectors: PairVectors, scores: NDArray[np.float32], document_class: NDArray[np.int32], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which pairs ``(N,)`` are doubtful, given their own ``scores`` ``(N,)``; duplicates do not count."""
    drawn = np.sort(rng.permutation(len(vectors))[:SAMPLE])
    documents = vectors.documents(drawn)
    found = np.zeros(len(vectors), dtype=bool)
    for block in blocks(len(vectors)):
        others = document_class[block][:, None] != document_class[drawn]
        as_high = others & (vectors.queries(block) @ documents.T >= scores[block][:, None])
        found[block] = as_high.sum(axis=1) >= SHARE * np.maximum(others.sum(axis=1), 1)
    return found
