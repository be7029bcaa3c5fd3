"""Exact false-negative masks of batches as packed."""

import numpy as np
from numpy.typing import NDArray

REASONS = ("known_positive", "duplicate", "score")


def false_negatives(
    scores: NDArray[np.float32], thresholds: NDArray[np.float32], known: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mask ``(B, B)``: documents j that must not be negatives of query i; never its own document.

    ``scores[i, j]`` is the surrogate's f(q_i, d_j), ``thresholds[i]`` what counts as positive,
    ``known[i, j]`` marks known positives. (Contextual Document Embeddings, eq. 4.)
    """
    mask: NDArray[np.bool_] = scores >= thresholds[:, None]
    mask |= known
    np.fill_diagonal(mask, False)
    return mask


def masked_by(mask: NDArray[np.bool_], known: NDArray[np.bool_], document_class: NDArray[np.int32]) -> dict[str, float]:
    """Share of negatives that each reason takes out; a cell counts for the first that holds.

    ``known_positive``: document j, another than i's own, stands beside query i or one like it in some pair.
    ``duplicate``: document j is i's own again, or nearly. ``score``: the surrogate alone says so.
    """
    batch = len(mask)
    copies = np.unique(document_class, return_counts=True)[1]
    duplicates = int(copies @ copies) - batch
    positives = int(np.count_nonzero(known)) - int(copies @ copies)  # a query's own document is known to it as well
    scored = int(np.count_nonzero(mask)) - positives - duplicates
    return {
        reason: count / (batch * (batch - 1))
        for reason, count in zip(REASONS, (positives, duplicates, scored), strict=True)
    }
