"""Arrays, texts and keys of texts that may be too many for memory, in files without a name in the scratch folder.

The system writes their pages to disk when memory is short, and removes a file together with its array. So functions
that make them remain functions of arrays."""

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from batchwright.core.fingerprint import text_keys
from batchwright.core.runtime import scratch

_SMALL = 1 << 20
"""Bytes up to which nothing is worth a file."""
_MOST_TEXTS, MOST_CHARACTERS, _MOST_ROWS = 1 << 14, 1 << 24, 1 << 12
"""Of a block."""


def spilled(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros.

    Raises:
        OSError: the disk is full.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= _SMALL:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(dir=scratch("spill")) as handle:
        _take_room(handle.fileno(), size)
        return np.frombuffer(mmap.mmap(handle.fileno(), size), dtype).reshape(shape)


class SpilledRows:
    """Rows of one dtype and shape, added in blocks."""

    def __init__(self, dtype: DTypeLike, shape: tuple[int, ...] = ()) -> None:
        self._dtype, self._shape, self._handle = np.dtype(dtype), shape, _file()

    def add(self, block: NDArray[Any]) -> None:
        """Append rows."""
        self._handle.write(np.ascontiguousarray(block, self._dtype).tobytes())

    def array(self) -> NDArray[Any]:
        """Return all rows, read-only; no more can be added."""
        with self._handle:
            return np.frombuffer(_contents(self._handle), self._dtype).reshape(-1, *self._shape)


def spilled_rows(blocks: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate arrays, at least one, that agree on all but the first axis; the result is read-only."""
    rest = iter(blocks)
    first = next(rest)
    rows = SpilledRows(first.dtype, first.shape[1:])
    for block in chain([first], rest):
        rows.add(block)
    return rows.array()


class SpilledTexts:
    """Texts, added in arrays of strings without nulls, which may be slices."""

    def __init__(self) -> None:
        self._ends, self._letters = SpilledRows(np.int64), SpilledRows(np.uint8)
        self._size = 0
        self._ends.add(np.zeros(1))

    def add(self, texts: pa.Array) -> None:
        """Append texts."""
        if len(texts):
            large = texts.cast(pa.large_string())
            own = text_bounds(large)
            self._letters.add(np.frombuffer(large.buffers()[2] or b"", np.uint8)[own[0] : own[-1]])
            self._ends.add(own[1:] - own[0] + self._size)
            self._size += int(own[-1] - own[0])

    def array(self) -> pa.LargeStringArray:
        """Return all texts; no more can be added."""
        ends, letters = self._ends.array(), self._letters.array()
        return pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(letters))


def spilled_texts(arrays: Iterable[pa.Array]) -> pa.LargeStringArray:
    """Concatenate arrays of strings without nulls; they may be slices."""
    texts = SpilledTexts()
    for array in arrays:
        texts.add(array)
    return texts.array()


def arrays_of(texts: Iterable[str]) -> Iterator[pa.LargeStringArray]:
    """Cut texts into arrays of some thousands."""
    return (pa.array(block, pa.large_string()) for block in blocks_of(texts))


def texts_in(texts: pa.LargeStringArray) -> Iterator[str]:
    """Read texts one after the other."""
    return (text for block in slices(len(texts)) for text in texts[block].to_pylist())


def cut_small(texts: pa.LargeStringArray) -> Iterator[pa.LargeStringArray]:
    """Cut texts into arrays of some thousands; of long ones, fewer. They are copies, so that each is pickled alone."""
    bounds, start = text_bounds(texts), 0
    while start < len(texts):
        fit = int(np.searchsorted(bounds, bounds[start] + MOST_CHARACTERS, side="right")) - 1
        stop = min(max(fit, start + 1), start + _MOST_TEXTS, len(texts))
        yield pa.concat_arrays([texts[start:stop]])
        start = stop


def text_bounds(texts: pa.LargeStringArray) -> NDArray[np.int64]:
    """Return where the first text begins and where each one ends, in bytes, ``(N + 1,)``."""
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def blocks_of(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut texts into lists of some thousands; of long ones, fewer."""
    block, size = list[str](), 0
    for text in texts:
        block.append(text)
        size += len(text)
        if len(block) == _MOST_TEXTS or size >= MOST_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def slices(count: int) -> Iterator[slice]:
    """Cut ``count`` rows into slices of some thousands; no rows are one empty slice."""
    return (slice(start, start + _MOST_ROWS) for start in range(0, max(count, 1), _MOST_ROWS))


def _take_room(file: int, size: int) -> None:
    """Give a file its size, on disk where the system can: or a full disk would end the process at a write of a page."""
    if hasattr(os, "posix_fallocate"):  # not on macOS
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


def _file() -> "tempfile.SpooledTemporaryFile[bytes]":
    return tempfile.SpooledTemporaryFile(_SMALL, dir=str(scratch("spill")))


def _contents(handle: "tempfile.SpooledTemporaryFile[bytes]") -> pa.Buffer:
    if handle.tell() > _SMALL:
        handle.flush()
        return pa.py_buffer(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
    handle.seek(0)
    return pa.py_buffer(handle.read())


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
