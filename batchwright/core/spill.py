"""Arrays and texts that may be too many for memory, in files without a name in the scratch folder.

The system writes their pages to disk when memory is short, and removes a file together with its array. So functions
that make them remain functions of arrays.
"""

import itertools
import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from batchwright.core.runtime import scratch

_SMALL = 1 << 20
"""Bytes up to which nothing is worth a file."""
_TOGETHER = 1 << 14


def spilled(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros.

    Raises:
        OSError: the disk is full.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= _SMALL:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(dir=scratch("spill")) as handle:
        os.posix_fallocate(handle.fileno(), 0, size)  # or a full disk would end the process when a page is written
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
    for block in itertools.chain([first], rest):
        rows.add(block)
    return rows.array()


def spilled_texts(arrays: Iterable[pa.Array]) -> pa.LargeStringArray:
    """Concatenate arrays of strings without nulls; they may be slices."""
    count, size = 0, 0
    with _file() as ends, _file() as letters:
        ends.write(bytes(8))
        for array in filter(len, arrays):
            large = array.cast(pa.large_string())
            own = text_bounds(large)
            letters.write(memoryview(large.buffers()[2] or b"")[own[0] : own[-1]])
            ends.write((own[1:] - own[0] + size).tobytes())
            count, size = count + len(array), size + int(own[-1] - own[0])
        return pa.LargeStringArray.from_buffers(count, _contents(ends), _contents(letters))


def arrays_of(texts: Iterable[str]) -> Iterator[pa.LargeStringArray]:
    """Cut texts into arrays of some thousands."""
    return (pa.array(block, pa.large_string()) for block in blocks_of(texts))


def texts_in(texts: pa.LargeStringArray) -> Iterator[str]:
    """Read texts one after the other."""
    return (text for block in slices(len(texts)) for text in texts[block].to_pylist())


def text_bounds(texts: pa.LargeStringArray) -> NDArray[np.int64]:
    """Return where the first text begins and where each one ends, in bytes, ``(N + 1,)``."""
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def blocks_of(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut texts into lists of some thousands."""
    rest = iter(texts)
    return iter(lambda: list(itertools.islice(rest, _TOGETHER)), [])


def slices(count: int) -> Iterator[slice]:
    """Cut ``count`` rows into slices of some thousands; no rows are one empty slice."""
    return (slice(start, start + _TOGETHER) for start in range(0, max(count, 1), _TOGETHER))


def _file() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(_SMALL, dir=scratch("spill"))


def _contents(handle: IO[bytes]) -> pa.Buffer:
    if handle.tell() > _SMALL:
        handle.flush()
        return pa.py_buffer(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
    handle.seek(0)
    return pa.py_buffer(handle.read())
