"""The splits: decided by the query alone, so that a query is in the same split in all domains."""

import numpy as np
from numpy.typing import NDArray


def held_out(query_hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Whether each pair is in the test split, ``(N,)``; a larger share holds out the same queries and more."""
    return query_hashes < np.uint64(share * 2.0**64)


def dev(query_hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Whether each pair is in the dev split, ``(N,)``: queries from the other end, so that either share may grow."""
    return held_out(~query_hashes, share)
