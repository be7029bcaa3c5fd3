"""Collects vectors on disk, in order of arrival, until all are there."""

from typing import IO

import numpy as np
from numpy.typing import NDArray

from batchwright.core.spill import spilled

_ROUNDING = 2e-3  # a few float16 steps near 1


class Spool:
    """One vector for each of ``texts`` rows, written to an open file as they arrive."""

    def __init__(self, handle: IO[bytes], texts: int) -> None:
        self._handle = handle
        self._places: NDArray[np.int64] = spilled(texts, np.int64)
        self._places[:] = -1
        self._written = 0
        self.width = 0

    def missing(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of some rows still lacks a vector, ``(len(rows),)``."""
        return self._places[rows] < 0

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float16]) -> NDArray[np.bool_]:
        """Keep the first vector of each row; return whether each of ``vectors`` differs from the one kept, ``(n,)``."""
        if not len(rows):
            return np.zeros(0, dtype=np.bool_)
        self.width = vectors.shape[1]
        new = np.flatnonzero(self._places[rows] < 0)
        found, first = np.unique(rows[new], return_index=True)
        self._handle.write(vectors[new[first]].tobytes())
        self._places[found] = self._written + np.arange(len(found))
        self._written += len(found)
        differs = np.zeros(len(rows), np.bool_)
        again = np.delete(np.arange(len(rows)), new[first])
        differs[again] = np.any(np.abs(self.take(rows[again]) - vectors[again]) > _ROUNDING, axis=1)
        return differs

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """Read the vectors ``(len(rows), width)`` of rows, none of which may be missing."""
        self._handle.flush()
        kept: NDArray[np.float16] = np.memmap(self._handle, np.float16, "r", shape=(self._written, self.width))
        return kept[self._places[rows]]
