"""Choose hard negatives from a ranking, leaving out false negatives."""

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.negatives import Negatives
from batchwright.formats.positives import KnownPositives, judged
from batchwright.formats.vectors import PairVectors, blocks

NONE = -1


def choose_hardest(
    ranked: NDArray[np.int64], surrogate: PairVectors, negatives: Negatives, count: int
) -> NDArray[np.int32]:
    """Choose each query's ``count`` best-ranked documents that are neither known positives nor false negatives.

    Args:
        ranked: ``(N, k)``, the rows of the top-ranked documents for the query of each pair, best first.
        surrogate: Vectors that judge as packing does (``Negatives.false``), unless someone judged otherwise.

    Returns:
        Rows ``(N, count)``, padded with -1.
    """
    known, irrelevant = KnownPositives(negatives), judged(negatives, relevant=False)
    chosen = np.full((len(ranked), count), NONE, dtype=np.int32)
    for block in blocks(len(ranked), rows_each=ranked.shape[1]):
        rows = ranked[block]
        documents = surrogate.documents(rows.ravel()).reshape(*rows.shape, -1)
        scores = np.einsum("nd,nkd->nk", surrogate.queries(block), documents)
        classes = negatives.query_class[block][:, None], negatives.document_class[rows]
        fit = ~negatives.false(block, scores, surrogate.likeness(block, rows)) | irrelevant.contains(*classes)
        fit &= ~known.contains(*classes)
        order = np.argsort(~fit, axis=1, kind="stable")[:, :count]
        found = np.where(np.take_along_axis(fit, order, axis=1), np.take_along_axis(rows, order, axis=1), NONE)
        chosen[block, : found.shape[1]] = found
    return chosen
