"""Exact false-negative masks of packed batches."""

import numpy as np
from numpy.typing import NDArray

REASONS = ("known_positive", "duplicate", "judged", "score")


def mask_of(false: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask ``(B, B)`` of documents j that must not be negatives of query i; the diagonal is never masked.

    ``false[i, j]`` marks false negatives that the surrogate found (``Negatives.false``), ``known[i, j]`` marks known
    positives (``KnownPositives``; Contextual Document Embeddings, eq. 4).
    """
    mask = false | known
    np.fill_diagonal(mask, False)
    return mask


def masked_by(
    mask: NDArray[np.bool_], known: NDArray[np.bool_], relevant: NDArray[np.bool_], document_class: NDArray[np.int32]
) -> dict[str, float]:
    """Return the share of negatives masked for each reason; a cell counts only for the first reason that holds.

    ``duplicate``: document j is a duplicate of i's own. ``known_positive``: document j is paired with query i, or with
    a duplicate of it, in some training pair. ``judged``: only a judgement says that document j answers query i, which
    is what ``relevant`` marks. ``score``: only the surrogate masks document j.
    """
    batch = len(mask)
    copies = np.unique(document_class, return_counts=True)[1]
    duplicates = int(copies @ copies) - batch
    judged = int(np.count_nonzero(relevant))
    # ``known`` includes own documents, their duplicates and what was judged.
    positives = int(np.count_nonzero(known)) - int(copies @ copies) - judged
    scored = int(np.count_nonzero(mask)) - positives - duplicates - judged
    return {
        reason: count / (batch * (batch - 1))
        for reason, count in zip(REASONS, (positives, duplicates, judged, scored), strict=True)
    }


def rows_mostly_masked(mask: NDArray[np.bool_]) -> int:
    """Count the queries of a batch with more than half of their negatives masked; they hardly learn anything."""
    return int(np.count_nonzero(2 * mask.sum(axis=1) > len(mask) - 1))
