"""An index of document tokens; the only module of this package that imports FAISS."""

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
"""``exact`` keeps every vector, ``compressed`` 32 bytes per vector (OPQ, product quantisation) in inverted lists."""

_CODES = 32
_PROBED = 8
_ROTATIONS = 10  # FAISS's default of 50 takes five times as long
_LEARNED_FROM = 39 * 256  # FAISS warns below 39 vectors per code or cell
_AT_ONCE = 2**23


class TokenIndex:
    """Token vectors, and the document of each: ``owners`` ``(T,)`` int32, documents numbered in the order added.

    ``model`` is the hash of the model that produced the vectors (``batchwright.formats.models.model_hash``).
    """

    def __init__(self, index: Any, model: str, saved: Saved | None = None) -> None:
        self._index, self._saved, self._mapped = index, saved, saved is not None
        self._owners = [saved.owners if saved else np.empty(0, np.int32)]
        self.model, self.documents = model, saved.documents if saved else 0

    @classmethod
    def empty(cls, width: int, model: str) -> "TokenIndex":
        """Create an exact index without documents, for vectors with ``width`` dimensions."""
        return cls(faiss.IndexFlatIP(width), model)

    @classmethod
    def build(
        cls, vectors: NDArray[np.float32], lengths: NDArray[np.int64], model: str, kind: Kind = "exact"
    ) -> "TokenIndex":
        """Index documents given as concatenated unit ``vectors`` ``(T, d)`` and token counts ``lengths`` ``(N,)``.

        A compressed index learns its codes from these vectors; more can be added later.

        Raises:
            InputError: there are too few vectors to learn a compression, or ``lengths`` do not sum to T.
        """
        built = cls.empty(vectors.shape[1], model) if kind == "exact" else cls(_compressed(vectors), model)
        built.add(vectors, lengths)
        return built

    @classmethod
    def open(cls, folder: Path, model: str) -> "TokenIndex":
        """Memory-map a saved index.

        Raises:
            InputError: it is missing or damaged, or was built with a model whose hash is not ``model``.
        """
        saved = read_saved(folder)
        if saved.model != model:
            raise InputError(
                f"{folder}: built with a model of hash {saved.model[:12]}, opened with one of hash {model[:12]}; "
                "build the index again, or load the model it was built with"
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
        """Number of tokens."""
        return sum(map(len, self._owners))

    def add(self, vectors: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        """Add documents, given as in ``build``; a memory-mapped index is first read into memory.

        Raises:
            InputError: ``vectors`` do not fit the index or ``lengths``, or the mapped index has since been replaced.
        """
        self._check_width(vectors)
        if lengths.sum() != len(vectors):
            raise InputError(f"{len(vectors)} vectors, but lengths sum to {lengths.sum()}; pass one vector per token")
        if self._mapped:
            assert self._saved
            self._saved.check_unchanged()
            self._index, self._mapped = _read(self._saved.folder), False
        self._index.add(np.ascontiguousarray(vectors, np.float32))
        first = self.documents
        self._owners.append(np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths))
        self.documents += len(lengths)

    def owners_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document of each token number; -1 stays -1."""
        return np.where(tokens < 0, -1, self.owners[tokens]).astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write the index to ``folder``, atomically, replacing any index there.

        Raises:
            InputError: the folder contains something else, or the index opened from it has since been replaced.
        """
        check_place(folder, self._saved)
        with atomic_dir(folder) as temporary:
            faiss.write_index(self._index, str(temporary / VECTORS))
            write_saved(temporary, self.owners, self.documents, self.model)
        self._saved = read_saved(folder)

    def _check_width(self, vectors: NDArray[np.float32]) -> None:
        if vectors.shape[1:] != (self._index.d,):
            raise InputError(f"vectors of shape {vectors.shape}; this index needs {self._index.d} dimensions")

    def _check_count(self, folder: Path) -> None:
        if self._index.ntotal != len(self):
            raise InputError(f"{folder}: {self._index.ntotal} vectors but {len(self)} owners; build the index again")

    def retrieve(
        self, queries: NDArray[np.float32], lengths: Sequence[int] | NDArray[np.int64], k: int
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Yield, per query, the ``k`` nearest tokens of its n tokens: similarities and token numbers, ``(n, k)`` each.

        Tokens are best first. ``queries`` ``(T, d)`` are concatenated token vectors, and ``lengths`` the number of
        tokens of each query. If the index has fewer than ``k`` tokens, all are returned; a token number of -1 means
        that fewer were found.
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
        raise InputError(f"{folder / VECTORS}: not an index that FAISS can read; build it again") from None


def _compressed(vectors: NDArray[np.float32]) -> Any:
    """Create an empty index that has learned its compression from ``vectors``."""
    if len(vectors) < _LEARNED_FROM:
        raise InputError(
            f"only {len(vectors)} tokens: a compressed index needs at least {_LEARNED_FROM}; build an exact one"
        )
    cells = min(int(4 * np.sqrt(len(vectors))), len(vectors) // 39)
    index: Any = faiss.index_factory(vectors.shape[1], f"OPQ{_CODES},IVF{cells},PQ{_CODES}", faiss.METRIC_INNER_PRODUCT)
    rotation: Any = faiss.downcast_VectorTransform(index.chain.at(0))
    rotation.niter = rotation.niter_pq_0 = _ROTATIONS
    index.train(np.ascontiguousarray(vectors, np.float32))
    faiss.extract_index_ivf(index).nprobe = max(cells // _PROBED, 1)
    return index


def _nothing(rows: int, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return np.empty((rows, k), np.float32), np.empty((rows, k), np.int64)
