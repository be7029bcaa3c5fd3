"""A compressed index whose codes go to files, for collections beyond memory."""

from pathlib import Path
from typing import Any, cast

import faiss
import numpy as np
from numpy.typing import NDArray

PART = 2**22
"""Tokens whose codes are in memory at once; they take about 200 MiB."""


class SpillingIndex:
    """Has the methods of a FAISS index that ``TokenIndex`` calls, but for removal.

    Args:
        learned: A compressed index without vectors.
        folder: Where the codes go; it must outlive the index, and nobody else may write there.
    """

    def __init__(self, learned: Any, folder: Path) -> None:
        self.d: int = learned.d
        self.ntotal = 0
        self._unwritten, self._folder = learned, folder
        self._parts: list[Any] = []
        self._stacked: Any = None
        self._learned = folder / "learned.faiss"
        faiss.write_index(learned, str(self._learned))

    def add_with_ids(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Add vectors ``(T, d)``, numbered ``ids`` ``(T,)``; write them once there are ``PART``."""
        for first in range(0, len(ids), PART):
            self._unwritten.add_with_ids(vectors[first : first + PART], ids[first : first + PART])
            if self._unwritten.ntotal >= PART:
                self._write()
        self.ntotal += len(ids)

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Similarities and numbers of the ``k`` nearest vectors, ``(Q, k)`` each; -1 where fewer were found."""
        if self._unwritten.ntotal:
            self._write()
        if self._stacked is None:
            self._stacked = self._stack()
        found: tuple[NDArray[np.float32], NDArray[np.int64]] = self._stacked.search(queries, k)
        return found

    def _write(self) -> None:
        file = self._folder / f"part-{len(self._parts):05}.faiss"
        faiss.write_index(self._unwritten, str(file))
        self._unwritten.reset()
        self._parts.append(faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC))
        self._stacked = None

    def _stack(self) -> Any:
        """An index of which each inverted list is those of all parts, one after the other, mapped from their files."""
        index = faiss.read_index(str(self._learned))
        lists = cast(Any, faiss).InvertedListsPtrVector()
        for part in self._parts:
            lists.push_back(faiss.extract_index_ivf(part).invlists)
        inverted = faiss.extract_index_ivf(index)
        stacked: Any = faiss.HStackInvertedLists(lists.size(), lists.data())
        inverted.replace_invlists(stacked, True)
        stacked.this.disown()
        index.ntotal = inverted.ntotal = self.ntotal
        return index
