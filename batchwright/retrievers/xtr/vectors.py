"""Token vectors that FAISS searches by inner product; the only module of this package that imports FAISS."""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError

_DIMENSIONS = 4
_PROBED = 8
_ROTATIONS = 10  # FAISS's default of 50 takes five times as long
_LEARNED_FROM = 39 * 256  # FAISS warns below 39 vectors per code or cell


def exact(width: int) -> Any:
    """An index of whole vectors, without any."""
    return faiss.IndexIDMap(faiss.IndexFlatIP(width))


def compressed(vectors: NDArray[np.float32]) -> Any:
    """An index without vectors that has learned its codes from ``vectors`` ``(T, d)``.

    Raises:
        InputError: there are too few vectors.
    """
    if len(vectors) < _LEARNED_FROM:
        raise InputError(
            f"only {len(vectors)} tokens: a compressed index needs at least {_LEARNED_FROM}; build an exact one"
        )
    cells = min(int(4 * np.sqrt(len(vectors))), len(vectors) // 39)
    codes = -(-vectors.shape[1] // _DIMENSIONS)
    parts = f"OPQ{codes}_{codes * _DIMENSIONS},IVF{cells},PQ{codes}"  # OPQ fills up to a whole number of codes
    index: Any = faiss.index_factory(vectors.shape[1], parts, faiss.METRIC_INNER_PRODUCT)
    rotation: Any = faiss.downcast_VectorTransform(index.chain.at(0))
    rotation.niter = rotation.niter_pq_0 = _ROTATIONS
    index.train(vectors)
    faiss.extract_index_ivf(index).nprobe = max(cells // _PROBED, 1)
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
