"""Exact false-negative masks of packed batches."""

import numpy as np
from numpy.typing import NDArray

REASONS = ("known_positive", "duplicate", "score")


def mask_of(false: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask ``(B, B)`` of documents j that must not be negatives of query i; the diagonal is never masked.

    ``false[i, j]`` marks false negatives that the surrogate found (``Negatives.false``), ``known[i, j]`` marks known
    positives (Contextual Document Embeddings, eq. 4).
    """
    mask = false | known
    np.fill_diagonal(mask, False)
    return mask


def masked_by(mask: NDArray[np.bool_], known: NDArray[np.bool_], document_class: NDArray[np.int32]) -> dict[str, float]:
    """Return the share of negatives masked for each reason; a cell counts only for the first reason that holds.

    ``duplicate``: document j is a duplicate of i's own. ``known_positive``: document j is paired with query i, or with
    a duplicate of it, in some training pair. ``score``: only the surrogate masks document j.
    """
    batch = len(mask)
    copies = np.unique(document_class, return_counts=True)[1]
    duplicates = int(copies @ copies) - batch
    positives = int(np.count_nonzero(known)) - int(copies @ copies)  # ``known`` includes own documents and duplicates
    scored = int(np.count_nonzero(mask)) - positives - duplicates
    return {
        reason: count / (batch * (batch - 1))
        for reason, count in zip(REASONS, (positives, duplicates, scored), strict=True)
    }
