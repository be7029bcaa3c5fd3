"""A domain's texts in the order of a vector store: unique and sorted by key."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.spill import arrays_of, keys_of, slices, spilled_rows, spilled_texts, texts_in, unique_order


def in_key_order(texts: Iterable[str]) -> tuple[pa.LargeStringArray, NDArray[np.void]]:
    """Sort unique texts by their keys ``(n,)``; keys are hashes, so the first texts are a random sample."""
    every = spilled_texts(arrays_of(texts))
    keys = keys_of(texts_in(every))
    order = unique_order(keys)
    return spilled_texts(every.take(pa.array(order[block])) for block in slices(len(order))), reordered(keys, order)


def unique_keys(texts: Iterable[str]) -> NDArray[np.void]:
    """Return the keys of unique texts, sorted, ``(n,)``."""
    keys = keys_of(texts)
    return reordered(keys, unique_order(keys))


def reordered(keys: NDArray[np.void], order: NDArray[np.int64]) -> NDArray[np.void]:
    """Return ``keys[order]``."""
    return spilled_rows(keys[order[block]] for block in slices(len(order)))
