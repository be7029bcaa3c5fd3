"""Cuts a domain's texts into chunks that are encoded together.

A vector's last bits depend on the batch it was encoded in, so chunks must not depend on workers,
interruptions or other domains. The cuts depend on content alone: adding or removing a text changes
only the chunk that it falls into, and all other chunks are found again by name.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.spill import key_words
from pipelines.embed.texts import in_key_order

MEAN_TEXTS = 512
MOST_TEXTS = 4 * MEAN_TEXTS


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Texts of similar length, with their prefixes, and their keys ``(n,)``."""

    texts: list[str]
    keys: NDArray[np.void]

    @property
    def name(self) -> str:
        """Hash of the texts, in order."""
        return hashlib.blake2b(self.keys.tobytes(), digest_size=16).hexdigest()


def cut_chunks(texts: Iterable[str]) -> Iterator[Chunk]:
    """Sort unique texts by length, then cut after each text whose key is divisible by ``MEAN_TEXTS``.

    No chunk has more than ``MOST_TEXTS`` texts.
    """
    unique, keys = in_key_order(texts)
    lengths = pc.utf8_length(unique).to_numpy()
    order = np.argsort(lengths, kind="stable")
    ends = _ends(key_words(keys)[0, order] % np.uint64(MEAN_TEXTS) == 0)
    for rows in np.split(order, ends):
        if len(rows):
            yield Chunk(texts=unique.take(pa.array(rows)).to_pylist(), keys=keys[rows])


def _ends(cuts: NDArray[np.bool_]) -> list[int]:
    """Positions to cut at, with additional cuts wherever a chunk would exceed ``MOST_TEXTS``."""
    ends: list[int] = []
    start = 0
    for cut in [*np.flatnonzero(cuts) + 1, len(cuts)]:
        ends += range(start + MOST_TEXTS, int(cut), MOST_TEXTS)
        ends.append(int(cut))
        start = int(cut)
    return ends
