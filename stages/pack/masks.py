"""Exact false-negative masks of packed batches."""

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.shards import REASONS


def mask_of(false: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask ``(B, B)`` of documents j that must not be negatives of query i; the diagonal is never masked.

    ``false[i, j]`` marks false negatives that the surrogate found (``Negatives.false``), ``known[i, j]`` marks known
    positives (``KnownPositives``; Contextual Document Embeddings, eq. 4).
    """
    mask = false | known
    np.fill_diagonal(mask, False)
    return mask


def reasons_of(
    mask: NDArray[np.bool_], known: NDArray[np.bool_], relevant: NDArray[np.bool_], document_class: NDArray[np.int32]
) -> NDArray[np.uint8]:
    """Return why each masked cell is masked, ``(M,)``, row after row, as places in ``REASONS``.

    A cell has the first reason that holds. ``duplicate``: document j is a duplicate of i's own. ``judged``: only a
    judgement says that document j answers query i, which is what ``relevant`` marks. ``known_positive``: document j is
    paired with query i, or with a duplicate of it, in some training pair. ``score``: none of these, so that the
    surrogate or the judge masks document j.
    """
    cells = np.full(mask.shape, REASONS.index("score"), np.uint8)
    # Later ones overrule earlier ones.
    np.putmask(cells, known, REASONS.index("known_positive"))
    np.putmask(cells, relevant, REASONS.index("judged"))
    np.putmask(cells, document_class[:, None] == document_class, REASONS.index("duplicate"))
    return cells[mask]


def masked_by(reasons: NDArray[np.uint8], batch: int) -> dict[str, float]:
    """Return the share of a batch's negatives that are masked for each reason."""
    counts = np.bincount(reasons, minlength=len(REASONS)).tolist()
    return {name: count / (batch * (batch - 1)) for name, count in zip(REASONS, counts, strict=True)}


def rows_mostly_masked(mask: NDArray[np.bool_]) -> int:
    """Count the queries of a batch with more than half of their negatives masked; they hardly learn anything."""
    return int(np.count_nonzero(2 * mask.sum(axis=1) > len(mask) - 1))
