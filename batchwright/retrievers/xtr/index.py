"""Token vectors that FAISS searches by inner product; only this module and ``spilling`` import FAISS."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import ArrayLike, NDArray

from batchwright.core.arguments import check_choice, whole_numbers
from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.terminal import counter
from batchwright.retrievers.xtr.index_folder import VECTORS, Kind, Saved, check_place, read_saved, write_saved
from batchwright.retrievers.xtr.spilling import SpillingIndex

_DIMENSIONS = 4
_PROBED, _MOST_PROBED = 8, 64  # of 1,680 cells, 64 give the nDCG@10 that 210 give, within .002
_ROTATIONS = 10  # FAISS's default of 50 takes five times as long
_LEARNED_FROM = 39 * 256  # FAISS warns below 39 vectors per code or cell


def exact(width: int) -> Any:
    """An index of whole vectors, without any."""
    return faiss.IndexIDMap(faiss.IndexFlatIP(width))


def compressed(vectors: NDArray[np.float32], tokens: int) -> Any:
    """An index without vectors, for about ``tokens`` of them, that has learned its codes from ``vectors`` ``(T, d)``.

    Raises:
        InputError: there are too few vectors.
    """
    if len(vectors) < _LEARNED_FROM:
        raise InputError(
            f"only {len(vectors)} tokens: a compressed index needs at least {_LEARNED_FROM}; build an exact one"
        )
    cells = min(int(4 * np.sqrt(tokens)), len(vectors) // 39)
    codes = -(-vectors.shape[1] // _DIMENSIONS)
    # OPQ fills up to a whole number of codes. "np": codes are not numbered for comparisons that no search here makes,
    # which takes longer than all the rest.
    parts = f"OPQ{codes}_{codes * _DIMENSIONS},IVF{cells},PQ{codes}np"
    index: Any = faiss.index_factory(vectors.shape[1], parts, faiss.METRIC_INNER_PRODUCT)
    rotation: Any = faiss.downcast_VectorTransform(index.chain.at(0))
    rotation.niter = rotation.niter_pq_0 = _ROTATIONS
    index.train(vectors)
    faiss.extract_index_ivf(index).nprobe = min(max(cells // _PROBED, 1), _MOST_PROBED)
    return index


def write_vectors(index: Any, file: Path) -> None:
    """Write an index to ``file``."""
    faiss.write_index(index, str(file))


def read_vectors(file: Path, *, mapped: bool) -> Any:
    """Read an index, or memory-map it.

    Raises:
        InputError: FAISS cannot read the file.
    """
    try:
        return faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
    except RuntimeError:
        raise InputError(f"{file}: not an index that FAISS can read; build it again") from None


_AT_ONCE = 2**23


class TokenIndex:
    """Token vectors, and the document of each: ``owners`` ``(T,)`` int32, documents numbered in the order added.

    ``model`` is the hash of the model that produced the vectors (``batchwright.formats.models.model_hash``).
    ``deleted`` are the numbers of deleted documents, ascending; numbers of documents and tokens never change.
    """

    def __init__(self, vectors: Any, model: str, saved: Saved | None = None) -> None:
        self._vectors, self._saved, self._mapped = vectors, saved, saved is not None
        self._owners = [saved.owners if saved else np.empty(0, np.int32)]
        self.deleted = np.array(saved.facts.deleted if saved else [], np.int32)
        self.model, self.documents = model, saved.facts.documents if saved else 0

    @classmethod
    def empty(cls, width: int, model: str) -> "TokenIndex":
        """Create an exact index without documents, for vectors with ``width`` dimensions."""
        return cls(exact(width), model)

    @classmethod
    def build(
        cls, vectors: NDArray[np.float32], lengths: NDArray[np.int64], model: str, kind: Kind = "exact"
    ) -> "TokenIndex":
        """Index documents given as concatenated unit ``vectors`` ``(T, d)`` and token counts ``lengths`` ``(N,)``.

        A compressed index learns its codes from these vectors; more can be added later.

        Raises:
            InputError: there is no such ``kind``, there are too few vectors to learn a compression, some are not
                finite, or ``lengths`` do not sum to T.
        """
        check_choice("kind", kind, Kind)
        vectors = _finite(vectors)
        built = cls.empty(vectors.shape[1], model) if kind == "exact" else cls(compressed(vectors, len(vectors)), model)
        built.add(vectors, lengths)
        return built

    @classmethod
    def spilling(cls, learn_from: NDArray[np.float32], tokens: int, model: str, folder: Path) -> "TokenIndex":
        """Create a compressed index without documents whose codes go to ``folder``, which must outlive it.

        It learns its codes from ``learn_from`` ``(T, d)``, and expects about ``tokens`` tokens. Nothing can be deleted
        from it, and it cannot be saved.

        Raises:
            InputError: there are too few vectors to learn from, or some are not finite.
        """
        return cls(SpillingIndex(compressed(_finite(learn_from), tokens), folder), model)

    @classmethod
    def open(cls, folder: Path, model: str, *, verify: bool = True) -> "TokenIndex":
        """Memory-map a saved index; without ``verify``, only the size of its vectors is checked, not their content.

        Raises:
            InputError: it is missing or damaged, or was built with a model whose hash is not ``model``.
        """
        saved = read_saved(folder)
        if saved.facts.model != model:
            raise InputError(
                f"{folder}: built with a model of hash {saved.facts.model[:12]}, opened with one of hash {model[:12]}; "
                "build the index again, or load the model it was built with"
            )
        if verify:
            saved.verify()
        opened = cls(read_vectors(folder / VECTORS, mapped=True), model, saved)
        opened._check_count(folder)
        return opened

    @property
    def owners(self) -> NDArray[np.int32]:
        """The document of each token, ``(T,)``, deleted ones too."""
        if len(self._owners) > 1:
            self._owners = [np.concatenate(self._owners)]
        return self._owners[0]

    @property
    def present(self) -> NDArray[np.int64]:
        """The numbers of the documents that are not deleted, ascending."""
        return np.setdiff1d(np.arange(self.documents), self.deleted)

    def __len__(self) -> int:
        """Number of tokens, without those of deleted documents."""
        return int(self._vectors.ntotal)

    def add(self, vectors: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        """Add documents, given as in ``build``; a memory-mapped index is first read into memory.

        Raises:
            InputError: ``vectors`` do not fit the index or ``lengths``, some are not finite, or the mapped index has
                since been replaced.
        """
        vectors = self._checked(vectors)
        if lengths.sum() != len(vectors):
            raise InputError(f"{len(vectors)} vectors, but lengths sum to {lengths.sum()}; pass one vector per token")
        self._load()
        first, known = self.documents, sum(map(len, self._owners))
        self._vectors.add_with_ids(vectors, np.arange(known, known + len(vectors)))
        self._owners.append(np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths))
        self.documents += len(lengths)

    def delete(self, documents: ArrayLike) -> None:
        """Delete documents by number; a memory-mapped index is first read into memory.

        Raises:
            InputError: a number is not that of a document of this index, the mapped index has since been replaced, or
                this index is one on disk.
        """
        self._check_in_memory()
        numbers = np.unique(whole_numbers("documents", documents))
        unknown = np.setdiff1d(numbers, self.present)
        if len(unknown):
            raise InputError(
                f"no document {unknown[0]}: the index has {len(self.present)} of numbers 0 to {self.documents - 1}"
            )
        self._load()
        self._vectors.remove_ids(np.flatnonzero(np.isin(self.owners, numbers)))
        self.deleted = np.union1d(self.deleted, numbers).astype(np.int32)

    def owners_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document of each token number; -1 stays -1."""
        return np.where(tokens < 0, -1, self.owners[tokens]).astype(np.int64)

    def save(self, folder: Path | str) -> None:
        """Write the index to ``folder``, atomically, replacing any index there.

        Raises:
            InputError: the folder contains something else, the index opened from it has since been replaced, or this
                index is one on disk.
        """
        folder = Path(folder)
        self._check_in_memory()
        check_place(folder, self._saved)
        with atomic_dir(folder) as temporary:
            write_vectors(self._vectors, temporary / VECTORS)
            write_saved(temporary, self.owners, self.documents, self.deleted, self.model)
        self._saved = read_saved(folder)

    def verify(self) -> None:
        """Check the files that this index was opened from or saved to against their hashes.

        Raises:
            InputError: it was not saved, or a file is missing or has changed.
        """
        if self._saved is None:
            raise InputError("this index was never saved; there are no files to verify")
        self._saved.verify()

    def retrieve(
        self, queries: NDArray[np.float32], lengths: Sequence[int] | NDArray[np.int64], k: int
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Yield, per query, the ``k`` nearest tokens of its n tokens: similarities and token numbers, ``(n, k)`` each.

        Tokens are best first. ``queries`` ``(T, d)`` are concatenated token vectors, and ``lengths`` the number of
        tokens of each query. If the index has fewer than ``k`` tokens, all are returned; a token number of -1 means
        that fewer were found.
        """
        queries = self._checked(queries)
        k = min(int(k), len(self))
        ends = np.cumsum(np.asarray(lengths, np.int64))
        first = 0
        with counter(len(ends), desc="retrieve tokens", unit="query") as progress:
            while first < len(ends):
                begin = ends[first - 1] if first else 0
                last = max(int(np.searchsorted(ends, begin + _AT_ONCE // max(k, 1), "right")), first + 1)
                block = queries[begin : ends[last - 1]]
                found = self._vectors.search(block, k) if k and len(block) else _nothing(len(block), k)
                cuts = ends[first : last - 1] - begin
                yield from zip(*(np.split(each, cuts) for each in found), strict=True)
                progress.update(last - first)
                first = last

    def _check_in_memory(self) -> None:
        if isinstance(self._vectors, SpillingIndex):
            raise InputError("an index on disk can neither be saved nor delete documents; build one in memory")

    def _load(self) -> None:
        """Read a memory-mapped index, which cannot be changed, into memory."""
        if self._mapped:
            assert self._saved
            self._saved.check_unchanged()
            self._vectors, self._mapped = read_vectors(self._saved.folder / VECTORS, mapped=False), False

    def _checked(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if vectors.shape[1:] != (self._vectors.d,):
            raise InputError(f"vectors of shape {vectors.shape}; this index needs {self._vectors.d} dimensions")
        return _finite(vectors)

    def _check_count(self, folder: Path) -> None:
        kept = len(self.owners) - int(np.isin(self.owners, self.deleted).sum())
        if self._vectors.ntotal != kept:
            raise InputError(f"{folder}: {self._vectors.ntotal} vectors but {kept} owners; build the index again")


def _finite(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise InputError(f"vector {broken[0]} is not finite: {len(broken)} of {len(vectors)} hold NaN or infinity")
    return np.ascontiguousarray(vectors, np.float32)


def _nothing(rows: int, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return np.empty((rows, k), np.float32), np.empty((rows, k), np.int64)
