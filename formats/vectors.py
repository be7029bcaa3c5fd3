"""Vectors: one float16 row a unique text of a domain, memory-mapped, keyed by what the model read."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from formats.errors import InputError
from formats.fingerprint import TEXT_KEY_BYTES, text_keys
from formats.pairs import file_stem
from formats.prefixes import Side
from formats.results import read_json, write_json

_SCAN_ROWS = 65536


@dataclass(frozen=True, kw_only=True)
class VectorStore:
    """The vectors of one model: a folder with ``model.json`` and a folder a domain."""

    folder: Path

    @property
    def model(self) -> dict[str, object]:
        """Weights hash, dimension, length limit and prefixes of the encoder."""
        return read_json(self.folder / "model.json", made_by="embed")

    def of(self, domain: str) -> "DomainVectors":
        """Open one domain, checking shape and values."""
        return DomainVectors.open(self.folder / file_stem(domain))

    def of_texts(self, domain: str, side: Side, texts: pa.ChunkedArray) -> NDArray[np.float32]:
        """Unit vectors ``(N, d)`` float32 of one side's texts, given as stored in the pairs."""
        prefixes = self.model["prefixes"]
        assert isinstance(prefixes, dict)
        chosen = prefixes["domains"].get(domain, prefixes["default"])[side]
        return self.of(domain).lookup([chosen + text for text in texts.to_pylist()])


@dataclass(frozen=True, kw_only=True)
class DomainVectors:
    """``keys`` are sorted 16-byte text keys ``(N,)``; ``vectors`` is ``(N, d)`` float16 on disk."""

    folder: Path
    keys: NDArray[np.void]
    vectors: NDArray[np.float16]

    @classmethod
    def open(cls, folder: Path) -> "DomainVectors":
        """Memory-map a domain.

        Raises:
            InputError: files are missing, or vectors are of the wrong form or not finite.
        """
        try:
            keys = np.load(folder / "keys.npy", mmap_mode="r")
            vectors = np.load(folder / "vectors.npy", mmap_mode="r")
        except FileNotFoundError as error:
            raise InputError(f"{error.filename}: no such file; run the stage 'embed' first") from None
        except ValueError as error:
            raise InputError(f"{folder}: not readable as NumPy arrays ({error}); run the stage 'embed' again") from None
        file = folder / "vectors.npy"
        if vectors.dtype != np.float16 or vectors.ndim != 2 or keys.dtype.itemsize != TEXT_KEY_BYTES:
            raise InputError(f"{file}: expected a float16 matrix, found {vectors.dtype} of shape {vectors.shape}")
        if len(keys) != len(vectors):
            raise InputError(f"{file}: {len(vectors)} vectors for {len(keys)} texts; run the stage 'embed' again")
        check_finite(file, vectors)
        return cls(folder=folder, keys=keys, vectors=vectors)

    def lookup(self, texts: list[str]) -> NDArray[np.float32]:
        """Vectors ``(len(texts), d)`` of texts as the model read them, prefix included."""
        wanted = text_keys(texts)
        rows = np.minimum(np.searchsorted(_sortable(self.keys), _sortable(wanted)), max(len(self.keys) - 1, 0))
        missing = self.keys[rows] != wanted if len(self.keys) else np.ones(len(wanted), bool)
        if missing.any():
            text = texts[int(np.argmax(missing))]
            raise InputError(f"{self.folder}: no vector for {text[:60]!r}; run the stage 'embed' again")
        return self.vectors[rows].astype(np.float32)


def write_domain_vectors(folder: Path, keys: NDArray[np.void], vectors: NDArray[np.float16]) -> None:
    """Write a domain's rows, in key order whatever order they come in."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.argsort(_sortable(keys))
    np.save(folder / "keys.npy", keys[order])
    np.save(folder / "vectors.npy", vectors[order])


def write_model(folder: Path, model: dict[str, object]) -> None:
    """Describe the encoder that a vector store belongs to."""
    write_json(folder / "model.json", model)


def check_finite(file: Path, vectors: NDArray[np.float16]) -> None:
    """Raise InputError naming the first row with a NaN or infinity."""
    for start in range(0, len(vectors), _SCAN_ROWS):
        finite = np.isfinite(vectors[start : start + _SCAN_ROWS]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise InputError(f"{file}: row {row} is not finite; check the model, then run the stage 'embed' again")


def _sortable(keys: NDArray[np.void]) -> NDArray[np.bytes_]:
    """Keys as two big-endian words: NumPy orders neither void nor bytes with trailing zeros."""
    words = np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)
    return words.astype(np.uint64).view([("high", np.uint64), ("low", np.uint64)]).reshape(-1)
