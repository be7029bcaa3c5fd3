"""Cutting a domain's texts into chunks that are encoded together.

A vector's last bits depend on the batch it was encoded in, so chunks must not depend on workers,
interruptions or other domains. The cuts are decided by content: a text added or removed changes the
chunk that it falls into and no other, and all other chunks are found again by name.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import text_keys

MEAN_TEXTS = 512
MOST_TEXTS = 4 * MEAN_TEXTS


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Texts of similar length, as the model reads them, with their keys ``(n,)``."""

    texts: list[str]
    keys: NDArray[np.void]

    @property
    def name(self) -> str:
        """Hash of the texts in order."""
        return hashlib.blake2b(self.keys.tobytes(), digest_size=16).hexdigest()


def cut_chunks(texts: Iterable[str]) -> list[Chunk]:
    """Unique texts in order of length, cut after each whose key is divisible by ``MEAN_TEXTS``."""
    unique = list(set(texts))
    if not unique:
        return []
    keys = text_keys(unique)
    words = keys.view(">u8").reshape(-1, 2).astype(np.uint64)
    lengths = np.fromiter((len(text) for text in unique), dtype=np.int64, count=len(unique))
    order = np.lexsort((words[:, 1], words[:, 0], lengths))
    ends = _ends(words[order, 0] % MEAN_TEXTS == 0)
    return [Chunk(texts=[unique[row] for row in rows], keys=keys[rows]) for rows in np.split(order, ends) if len(rows)]


def _ends(cuts: NDArray[np.bool_]) -> list[int]:
    """Positions after which to cut, with further cuts where ``MOST_TEXTS`` would be passed."""
    ends: list[int] = []
    start = 0
    for cut in [*np.flatnonzero(cuts) + 1, len(cuts)]:
        ends += range(start + MOST_TEXTS, int(cut), MOST_TEXTS)
        ends.append(int(cut))
        start = int(cut)
    return ends
