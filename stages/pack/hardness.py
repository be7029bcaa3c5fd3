"""The hardness of a batch and of its rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """Mean similarity of a batch's negatives: of all, and of those that are not masked.

    ``masked_share`` is the share of negatives that are masked.
    """

    hardness: float
    unmasked_hardness: float
    masked_share: float


def measure(similarities: NDArray[np.float32], mask: NDArray[np.bool_]) -> Hardness:
    """Measure a batch's hardness from its query-document similarities ``(B, B)`` (eq. 2, as a mean).

    The diagonal does not count; ``mask`` never includes it.
    """
    batch = len(similarities)
    negatives, masked = batch * (batch - 1), int(np.count_nonzero(mask))
    of_all = float(similarities.sum(dtype=np.float64) - similarities.trace(dtype=np.float64))
    of_masked = float(similarities[mask].sum(dtype=np.float64))
    return Hardness(
        hardness=of_all / negatives,
        unmasked_hardness=(of_all - of_masked) / (negatives - masked) if masked < negatives else 0.0,
        masked_share=masked / negatives,
    )


def measure_rows(
    similarities: NDArray[np.float32], mask: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each row's mean similarity to its unmasked negatives, 0 if there are none, and the share masked, ``(B,)``.

    The means are rounded: their last bits depend on the processor, and shards must not.
    """
    masked, negatives = np.count_nonzero(mask, axis=1), len(mask) - 1
    sums = (similarities * ~mask).sum(axis=1, dtype=np.float64) - similarities.diagonal()
    means = np.where(masked < negatives, sums / np.maximum(negatives - masked, 1), 0.0)
    return means.round(4).astype(np.float32), (masked / negatives).astype(np.float32)
