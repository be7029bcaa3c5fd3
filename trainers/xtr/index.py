"""An index of document tokens: the only module here that imports FAISS."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from formats.atomic import atomic_dir
from formats.errors import InputError
from formats.results import read_json, write_json

Kind = Literal["exact", "compressed"]
"""``exact`` keeps every vector; ``compressed`` 32 bytes of each (OPQ, product quantisation) in inverted lists."""

_CODES = 32
_PROBED = 8
_ROTATIONS = 10  # FAISS's own 50 take five times as long
_LEARNED_FROM = 39 * 256  # with less for each code and cell FAISS warns
_AT_ONCE = 2**23


class TokenIndex:
    """Tokens' vectors, and whose they are: ``owners`` ``(T,)`` int32, documents counted as they were added.

    ``model`` is the hash of the model that made the vectors (``formats.models.model_hash``).
    """

    def __init__(self, index: Any, owners: NDArray[np.int32], documents: int, model: str) -> None:
        self._index = index
        self._mapped: Path | None = None
        self.owners, self.documents, self.model = owners, documents, model

    @classmethod
    def build(
        cls, vectors: NDArray[np.float32], lengths: NDArray[np.int64], model: str, kind: Kind = "exact"
    ) -> "TokenIndex":
        """Index documents given as unit ``vectors`` ``(T, d)``, one after the other, and their ``lengths`` ``(N,)``.

        Raises:
            InputError: there are too few tokens to learn a compression from.
        """
        built = cls(_empty(vectors, kind), np.empty(0, np.int32), 0, model)
        built.add(vectors, lengths)
        return built

    @classmethod
    def open(cls, folder: Path, model: str) -> "TokenIndex":
        """Map a saved index into memory.

        Raises:
            InputError: it is missing, damaged, or of another model than that with the hash ``model``.
        """
        facts = read_json(folder / "index.json", made_by="TokenIndex.save")
        if facts["model"] != model:
            raise InputError(
                f"{folder}: made by a model with the hash {facts['model'][:12]}, searched with one of {model[:12]}; "
                "build the index again, or load its own model"
            )
        file = folder / "index.faiss"
        try:
            index = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC)
            owners = np.load(folder / "owners.npy", mmap_mode="r")
        except (RuntimeError, OSError, ValueError) as error:
            raise InputError(
                f"{folder}: cannot be read ({str(error).splitlines()[0]}); build the index again"
            ) from None
        if not index.ntotal == len(owners) == facts["tokens"]:
            raise InputError(f"{folder}: {index.ntotal} vectors, {len(owners)} owners; build the index again")
        opened = cls(index, owners, facts["documents"], model)
        opened._mapped = file
        return opened

    def __len__(self) -> int:
        """How many tokens there are."""
        return len(self.owners)

    def add(self, vectors: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        """Add documents, as in ``build``; a mapped index is read into memory for it."""
        if self._mapped is not None:
            self._index, self._mapped = faiss.read_index(str(self._mapped)), None
        self._index.add(np.ascontiguousarray(vectors, np.float32))
        own = np.repeat(np.arange(self.documents, self.documents + len(lengths), dtype=np.int32), lengths)
        self.owners = np.concatenate([self.owners, own])
        self.documents += len(lengths)

    def owners_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Documents of tokens, -1 of none."""
        return np.where(tokens < 0, -1, self.owners[tokens]).astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write the index to ``folder``, atomically."""
        with atomic_dir(folder) as temporary:
            faiss.write_index(self._index, str(temporary / "index.faiss"))
            np.save(temporary / "owners.npy", self.owners)
            facts = {"model": self.model, "tokens": len(self), "documents": self.documents}
            write_json(temporary / "index.json", facts)

    def retrieve(
        self, queries: NDArray[np.float32], lengths: Sequence[int] | NDArray[np.int64], k: int
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """For each query its tokens' ``k`` nearest tokens, best first: similarities and numbers, ``(n, k)`` each.

        ``queries`` ``(T, d)`` are one after the other. Where the index holds or finds less than ``k``, fewer come; -1
        is none.
        """
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


def _empty(vectors: NDArray[np.float32], kind: Kind) -> Any:
    """An index without vectors, which has learned from ``vectors`` what it needs to."""
    width = vectors.shape[1]
    if kind == "exact":
        return faiss.IndexFlatIP(width)
    if len(vectors) < _LEARNED_FROM:
        raise InputError(f"{len(vectors)} tokens: a compressed index needs {_LEARNED_FROM}; build an exact one")
    cells = min(int(4 * np.sqrt(len(vectors))), len(vectors) // 39)
    index: Any = faiss.index_factory(width, f"OPQ{_CODES},IVF{cells},PQ{_CODES}", faiss.METRIC_INNER_PRODUCT)
    rotation: Any = faiss.downcast_VectorTransform(index.chain.at(0))
    rotation.niter = rotation.niter_pq_0 = _ROTATIONS
    index.train(np.ascontiguousarray(vectors, np.float32))
    faiss.extract_index_ivf(index).nprobe = max(cells // _PROBED, 1)
    return index


def _nothing(rows: int, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return np.empty((rows, k), np.float32), np.empty((rows, k), np.int64)
