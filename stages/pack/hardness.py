"""How hard a batch is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """Mean similarity of a batch's negatives: all of them, and those that the mask leaves.

    ``masked_share`` is the share of negatives that the mask takes out.
    """

    hardness: float
    unmasked_hardness: float
    masked_share: float


def measure(similarities: NDArray[np.float32], mask: NDArray[np.bool_]) -> Hardness:
    """Hardness of a batch from its query-document similarities ``(B, B)`` (eq. 2, as a mean)."""
    others = ~np.eye(len(similarities), dtype=bool)
    kept = others & ~mask
    return Hardness(
        hardness=float(similarities[others].mean(dtype=np.float64)),
        unmasked_hardness=float(similarities[kept].mean(dtype=np.float64)) if kept.any() else 0.0,
        masked_share=float(mask[others].mean()),
    )
