"""The held-out split: by query alone, so that no query is on both sides, in whatever domain."""

import numpy as np
from numpy.typing import NDArray


def held_out(query_hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Which pairs belong to the test split, ``(N,)``; a larger share holds out the same queries and more."""
    return query_hashes < np.uint64(share * 2.0**64)
