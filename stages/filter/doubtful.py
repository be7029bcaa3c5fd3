"""Find pairs whose own document scores no higher than a document drawn at random would."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.formats.vectors import PairVectors, blocks
from stages.filter.rules import ROUNDING

SAMPLE = 512
"""Documents drawn from the domain."""
SHARE = 0.2
"""A pair is doubtful if at least this share of them scores as high as its own document."""


def doubtful(
    vectors: PairVectors,
    scores: NDArray[np.float32],
    document_class: NDArray[np.int32],
    rng: np.random.Generator,
    do_parts: Map = map,
) -> NDArray[np.bool_]:
    """Return which pairs ``(N,)`` are doubtful, given their own ``scores`` ``(N,)``.

    Duplicates do not count, and equal scores are as high.
    """
    drawn = np.sort(rng.permutation(len(vectors))[:SAMPLE])
    compared = partial(_doubtful, vectors, scores, document_class, drawn)
    return np.concatenate([np.empty(0, bool), *do_parts(compared, blocks(len(vectors)))])


def _doubtful(
    vectors: PairVectors,
    scores: NDArray[np.float32],
    document_class: NDArray[np.int32],
    drawn: NDArray[np.int64],
    block: slice,
) -> NDArray[np.bool_]:
    others = document_class[block][:, None] != document_class[drawn]
    lowest = scores[block][:, None] - ROUNDING
    as_high = others & (vectors.queries(block) @ vectors.documents(drawn).T >= lowest)
    doubts: NDArray[np.bool_] = as_high.sum(axis=1) >= SHARE * np.maximum(others.sum(axis=1), 1)
    return doubts
