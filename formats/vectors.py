"""Vectors: one float16 row a unique text of a domain, memory-mapped, keyed by what the model read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.arrays import read_array
from formats.errors import InputError
from formats.fingerprint import TEXT_KEY_BYTES, text_keys
from formats.pairs import file_stem
from formats.prefixes import Prefixes, Side
from formats.results import read_json, write_json

_ENCODER = "encoder.json"
_SCAN_ROWS = 65536


@dataclass(frozen=True, kw_only=True)
class VectorStore:
    """The vectors of one encoder: a folder with ``encoder.json`` and a folder a domain."""

    folder: Path
    weights: str
    prefixes: Prefixes

    @classmethod
    def open(cls, folder: Path) -> "VectorStore":
        """Open the vectors in ``data/vectors/NAME``."""
        if folder.parent.is_dir() and not folder.is_dir():
            known = ", ".join(sorted(other.name for other in folder.parent.iterdir()))
            raise InputError(f"{folder}: no vectors of that name; 'embed.models' made: {known}")
        encoder = read_json(folder / _ENCODER, made_by="embed")
        return cls(folder=folder, weights=encoder["weights"], prefixes=Prefixes.model_validate(encoder["prefixes"]))

    def of(self, domain: str) -> "DomainVectors":
        """Memory-map one domain.

        Raises:
            InputError: files are missing, or vectors are of the wrong form or not finite.
        """
        folder = self.folder / file_stem(domain)
        vectors = read_array(folder / "vectors.npy", np.float16, (None, None), made_by="embed")
        keys = read_array(folder / "keys.npy", f"V{TEXT_KEY_BYTES}", (len(vectors),), made_by="embed")
        _check_finite(folder / "vectors.npy", vectors)
        return DomainVectors(folder=folder, domain=domain, prefixes=self.prefixes, words=_words(keys), vectors=vectors)


@dataclass(frozen=True, kw_only=True)
class DomainVectors:
    """``vectors`` is ``(N, d)`` float16 on disk; ``words`` are its text keys ``(N,)``, sorted."""

    folder: Path
    domain: str
    prefixes: Prefixes
    words: NDArray[np.void]
    vectors: NDArray[np.float16]

    def of(self, side: Side, texts: list[str]) -> NDArray[np.float32]:
        """Unit vectors ``(len(texts), d)`` of texts as they stand in the pairs, on one side.

        Raises:
            InputError: a text was not there when the vectors were made.
        """
        prefix = self.prefixes.of(self.domain, side)
        wanted = _words(text_keys([prefix + text for text in texts]))
        rows = np.searchsorted(self.words, wanted)
        known = rows < len(self.words)
        known[known] = self.words[rows[known]] == wanted[known]
        if not known.all():
            text = texts[int(np.argmin(known))]
            raise InputError(f"{self.folder}: no vector for the {side} {text[:60]!r}; run the stage 'embed' again")
        found: NDArray[np.float32] = self.vectors[rows].astype(np.float32)
        return found


def write_domain_vectors(folder: Path, keys: NDArray[np.void], vectors: NDArray[np.float16]) -> None:
    """Write a domain's rows, in key order whatever order they come in."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.argsort(_words(keys))
    np.save(folder / "keys.npy", keys[order])
    np.save(folder / "vectors.npy", vectors[order])


def write_encoder(folder: Path, encoder: dict[str, Any]) -> None:
    """Describe the encoder that a vector store belongs to; ``weights`` and ``prefixes`` must be there."""
    write_json(folder / _ENCODER, encoder)


def _check_finite(file: Path, vectors: NDArray[np.float16]) -> None:
    """Raise InputError naming the first row with a NaN or infinity."""
    for start in range(0, len(vectors), _SCAN_ROWS):
        finite = np.isfinite(vectors[start : start + _SCAN_ROWS]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise InputError(f"{file}: row {row} is not finite; check the model, then run the stage 'embed' again")


def _words(keys: NDArray[np.void]) -> NDArray[np.void]:
    """Keys as two big-endian words: NumPy orders neither void nor bytes with trailing zeros."""
    words = np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)
    return words.astype(np.uint64).view([("high", np.uint64), ("low", np.uint64)]).reshape(-1)
