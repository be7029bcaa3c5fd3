"""Keys of texts as pairs of words, in which they can be sorted and found, for more texts than memory holds."""

from collections.abc import Iterable
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import text_keys
from batchwright.core.spill import blocks_of, slices, spilled, spilled_rows

Words = NDArray[np.uint64]
"""The high and the low words of n keys, ``(2, n)``: NumPy cannot sort void, and ignores trailing zeros in bytes."""


def keys_of(texts: Iterable[str]) -> NDArray[np.void]:
    """Return the keys ``(n,)`` of texts (``text_keys``)."""
    return spilled_rows(map(text_keys, chain([[]], blocks_of(texts))))


def key_words(keys: NDArray[np.void]) -> Words:
    """Return the words of ``keys`` ``(n,)``."""
    words: Words = spilled((2, len(keys)), np.uint64)
    for block in slices(len(keys)):
        words[:, block] = np.ascontiguousarray(keys[block]).view(">u8").reshape(-1, 2).T
    return words


def sort_keys(words: Words) -> NDArray[np.int64]:
    """Return the order ``(n,)`` in which keys ascend; equal keys stay as they are."""
    return np.lexsort(words[::-1])


def first_in(words: Words, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which keys differ from the one before them in ``order`` ``(n,)``."""
    differs = np.ones(len(order), bool)
    for block in slices(len(order) - 1):
        differs[1:][block] = (words[:, order[1:][block]] != words[:, order[:-1][block]]).any(axis=0)
    return differs


def unique_order(keys: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the places of unique keys, in the order of the keys; of equal ones, the first."""
    words = key_words(keys)
    order = sort_keys(words)
    return order[first_in(words, order)]


def find_keys(words: Words, keys: NDArray[np.void]) -> NDArray[np.int64]:
    """Row of each key in ``words``, which are sorted; -1 if it is absent."""
    wanted, count = key_words(keys), words.shape[1]
    rows = np.searchsorted(words[0], wanted[0])
    if not count:
        return np.full_like(rows, -1)
    # Only a different key with the same high word sends the search on; there is hardly ever any.
    while (behind := _at(words, rows, wanted)[0]).any():
        rows[behind] += 1
    return np.where(_at(words, rows, wanted)[1], rows, -1)


def _at(words: Words, rows: NDArray[np.int64], wanted: Words) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which keys in these rows have the wanted high word and come before the wanted key, and which are it."""
    high, low = words[:, np.minimum(rows, words.shape[1] - 1)]
    there = (rows < words.shape[1]) & (high == wanted[0])
    return there & (low < wanted[1]), there & (low == wanted[1])
