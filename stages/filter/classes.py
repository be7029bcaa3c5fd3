"""Duplicate texts get one class."""

import numpy as np
from numpy.typing import NDArray

from formats.fingerprint import text_keys


def duplicate_classes(texts: list[str]) -> NDArray[np.int32]:
    """Class ``(N,)`` of each text: equal where texts are equal but for case and white space."""
    keys = text_keys(" ".join(text.casefold().split()) for text in texts)
    words = keys.view(np.uint64).reshape(-1, 2)
    return np.unique(words, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)
