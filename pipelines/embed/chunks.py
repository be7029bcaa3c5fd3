"""A domain's unique texts: in the order of a vector store, which is that of their keys, and cut into chunks.

The texts of a chunk are encoded together. A vector's last bits depend on the batch it was encoded in, so chunks must
not depend on workers, interruptions or other domains. The cuts depend on content alone: adding or removing a text
changes only the chunk that it falls into, and all other chunks are found again by name.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.spill import (
    arrays_of,
    key_words,
    keys_of,
    slices,
    spilled_rows,
    spilled_texts,
    texts_in,
    unique_order,
)

MEAN_TEXTS = 512
MOST_TEXTS = 4 * MEAN_TEXTS


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
