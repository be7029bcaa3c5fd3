"""An index of document tokens: the only module here that imports FAISS."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.retrievers.xtr.index_folder import VECTORS, Saved, check_place, read_saved, write_saved

Kind = Literal["exact", "compressed"]
"""``exact`` keeps every vector; ``compressed`` 32 bytes of each (OPQ, product quantisation) in inverted lists."""

_CODES = 32
_PROBED = 8
_ROTATIONS = 10  # FAISS's own 50 take five times as long
_LEARNED_FROM = 39 * 256  # with less for each code and cell FAISS warns
_AT_ONCE = 2**23


class TokenIndex:
    """Tokens' vectors, and whose they are: ``owners`` ``(T,)`` int32, documents counted as they were added.

    ``model`` is the hash of the model that made the vectors (``batchwright.formats.models.model_hash``).
    """

    def __init__(self, index: Any, model: str, saved: Saved | None = None) -> None:
        self._index, self._saved, self._mapped = index, saved, saved is not None
        self._owners = [saved.owners if saved else np.empty(0, np.int32)]
        self.model, self.documents = model, saved.documents if saved else 0

    @classmethod
    def empty(cls, width: int, model: str) -> "TokenIndex":
        """An exact index without documents, for vectors of so many dimensions."""
        return cls(faiss.IndexFlatIP(width), model)

    @classmethod
    def build(
        cls, vectors: NDArray[np.float32], lengths: NDArray[np.int64], model: str, kind: Kind = "exact"
    ) -> "TokenIndex":
        """Index documents given as unit ``vectors`` ``(T, d)``, one after the other, and their ``lengths`` ``(N,)``.

        A compressed index learns its codes from these; more may be added later.

        Raises:
            InputError: there are too few tokens to learn a compression from, or not as many as ``lengths`` say.
        """
        built = cls.empty(vectors.shape[1], model) if kind == "exact" else cls(_compressed(vectors), model)
        built.add(vectors, lengths)
        return built

    @classmethod
    def open(cls, folder: Path, model: str) -> "TokenIndex":
        """Map a saved index into memory.

        Raises:
            InputError: it is missing, damaged, or of another model than that with the hash ``model``.
        """
        saved = read_saved(folder)
        if saved.model != model:
            raise InputError(
                f"{folder}: made by a model with the hash {saved.model[:12]}, searched with one of {model[:12]}; "
                "build the index again, or load its own model"
            )
        opened = cls(_read(folder, faiss.IO_FLAG_MMAP_IFC), model, saved)
        opened._check_count(folder)
        return opened

    @property
    def owners(self) -> NDArray[np.int32]:
        """The document of each token, ``(T,)``."""
        if len(self._owners) > 1:
            self._owners = [np.concatenate(self._owners)]
        return self._owners[0]

    def __len__(self) -> int:
        """How many tokens there are."""
        return sum(map(len, self._owners))

    def add(self, vectors: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        """Add documents, as in ``build``; a mapped index is read into memory for it.

        Raises:
            InputError: ``vectors`` are no such documents, or the mapped index was saved anew by others.
        """
        self._check_width(vectors)
        if lengths.sum() != len(vectors):
            raise InputError(f"{len(vectors)} vectors of documents that have {lengths.sum()} tokens in all")
        if self._mapped:
            assert self._saved
            self._saved.check_unchanged()
            self._index, self._mapped = _read(self._saved.folder), False
        self._index.add(np.ascontiguousarray(vectors, np.float32))
        first = self.documents
        self._owners.append(np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths))
        self.documents += len(lengths)

    def owners_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Documents of tokens, -1 of none."""
        return np.where(tokens < 0, -1, self.owners[tokens]).astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write the index to ``folder``, atomically; it may replace the one that was opened there.

        Raises:
            InputError: the folder holds something else, or an index that others saved since this one was opened.
        """
        check_place(folder, self._saved)
        with atomic_dir(folder) as temporary:
            faiss.write_index(self._index, str(temporary / VECTORS))
            write_saved(temporary, self.owners, self.documents, self.model)
        self._saved = read_saved(folder)

    def _check_width(self, vectors: NDArray[np.float32]) -> None:
        if vectors.shape[1:] != (self._index.d,):
            raise InputError(f"vectors {vectors.shape}; this index holds those of {self._index.d} dimensions")

    def _check_count(self, folder: Path) -> None:
        if self._index.ntotal != len(self):
            raise InputError(f"{folder}: {self._index.ntotal} vectors, {len(self)} owners; build the index again")

    def retrieve(
        self, queries: NDArray[np.float32], lengths: Sequence[int] | NDArray[np.int64], k: int
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """For each query its tokens' ``k`` nearest tokens, best first: similarities and numbers, ``(n, k)`` each.

        ``queries`` ``(T, d)`` are one after the other. Where the index holds or finds less than ``k``, fewer come; -1
        is none.
        """
        self._check_width(queries)
        k = min(k, len(self))
        ends = np.cumsum(np.asarray(lengths, np.int64))
        first = 0
        with tqdm(total=len(ends), desc="retrieve tokens", unit="query", mininterval=2) as progress:
            while first < len(ends):
                begin = ends[first - 1] if first else 0
                last = max(int(np.searchsorted(ends, begin + _AT_ONCE // max(k, 1), "right")), first + 1)
                block = np.ascontiguousarray(queries[begin : ends[last - 1]], np.float32)
                found = self._index.search(block, k) if k and len(block) else _nothing(len(block), k)
                cuts = ends[first : last - 1] - begin
                yield from zip(*(np.split(each, cuts) for each in found), strict=True)
                progress.update(last - first)
                first = last


def _read(folder: Path, flags: int = 0) -> Any:
    try:
        return faiss.read_index(str(folder / VECTORS), flags)
    except RuntimeError:
        raise InputError(f"{folder / VECTORS}: no index that FAISS can read; build it again") from None


def _compressed(vectors: NDArray[np.float32]) -> Any:
    """An index without vectors that has learned from ``vectors`` how to compress."""
    if len(vectors) < _LEARNED_FROM:
        raise InputError(f"{len(vectors)} tokens: a compressed index needs {_LEARNED_FROM}; build an exact one")
    cells = min(int(4 * np.sqrt(len(vectors))), len(vectors) // 39)
    index: Any = faiss.index_factory(vectors.shape[1], f"OPQ{_CODES},IVF{cells},PQ{_CODES}", faiss.METRIC_INNER_PRODUCT)
    rotation: Any = faiss.downcast_VectorTransform(index.chain.at(0))
    rotation.niter = rotation.niter_pq_0 = _ROTATIONS
    index.train(np.ascontiguousarray(vectors, np.float32))
    faiss.extract_index_ivf(index).nprobe = max(cells // _PROBED, 1)
    return index


def _nothing(rows: int, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return np.empty((rows, k), np.float32), np.empty((rows, k), np.int64)
