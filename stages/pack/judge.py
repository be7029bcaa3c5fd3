"""A cross-encoder that judges cells in doubt: pairs about as alike as a false negative must be."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.cross_encoder import Reranker
from batchwright.formats.negatives import Negatives
from stages.pack.params import JudgeParams


class Judge:
    """A ``Reranker`` that is asked as its parameters say; ``weights`` is the hash of the model.

    Raises:
        InputError: the model cannot be used.
    """

    def __init__(self, params: JudgeParams) -> None:
        self._params, self._reranker = params, Reranker("pack.judge", params.model, params)

    @property
    def weights(self) -> str:
        """The hash of the model."""
        return self._reranker.weights

    def in_doubt(
        self, negatives: Negatives, rows: NDArray[np.int64], scores: NDArray[np.float32], likeness: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Which cells ``(B, B)`` are about as alike as they must be, and score high enough for the surrogate.

        Where a domain has no such limit, nothing is in doubt.
        """
        limits = negatives.limits(rows)
        low, high = limits - self._params.below, limits + self._params.above
        near: NDArray[np.bool_] = (likeness >= low) & (likeness < high)
        return near & (scores >= negatives.thresholds[rows][:, None])

    def answers(self, queries: Sequence[str], documents: Sequence[str], asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the cells ``asked`` ``(B, B)`` hold a document that answers the query about as well as its own.

        Only these cells, and the own documents of their queries, are scored.
        """
        found = np.zeros_like(asked)
        rows, columns = np.nonzero(asked)
        own = np.unique(rows)
        cells = np.concatenate([np.stack([own, own]), np.stack([rows, columns])], axis=1).T.tolist()
        scores = self._reranker.score([(queries[i], documents[j]) for i, j in cells])
        lowest = np.full(len(asked), np.inf, np.float32)
        lowest[own] = scores[: len(own)] - np.float32(self._params.margin)
        found[rows, columns] = scores[len(own) :] >= lowest[rows]
        return found
