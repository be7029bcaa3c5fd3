"""A domain's texts in the order of a vector store: unique and sorted by key."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import text_keys
from batchwright.formats.vectors import key_words


def in_key_order(texts: Iterable[str]) -> tuple[list[str], NDArray[np.void]]:
    """Sort unique texts by their keys ``(n,)``; keys are hashes, so the first texts are a random sample."""
    unique = list(set(texts))
    keys = text_keys(unique)
    order = np.argsort(key_words(keys))
    return [unique[row] for row in order], keys[order]
