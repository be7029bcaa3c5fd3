"""The texts of a domain as a vector store keeps them: each once, in key order."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import text_keys
from batchwright.formats.vectors import key_words


def in_key_order(texts: Iterable[str]) -> tuple[list[str], NDArray[np.void]]:
    """Unique texts and their keys ``(n,)``; keys are hashes, so the first few are a random sample."""
    unique = list(set(texts))
    keys = text_keys(unique)
    order = np.argsort(key_words(keys))
    return [unique[row] for row in order], keys[order]
