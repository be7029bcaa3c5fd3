"""Vectors: one row per unique text of a domain, found by the hash of the text, and what an artifact was made from."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.arguments import check_texts
from batchwright.core.errors import InputError
from batchwright.core.files import read_array, read_json, write_json
from batchwright.core.fingerprint import TEXT_KEY_BYTES, text_keys
from batchwright.core.grid import unit
from batchwright.core.params import Params
from batchwright.core.spill import Words, find_keys, key_words, sort_keys
from batchwright.formats.models import SIDES, Prefixes, Side
from batchwright.formats.pairs import PairsPart, file_stem

_PROVENANCE_FILE = "provenance.json"
_ENCODER_FILE = "encoder.json"
_BLOCK_ROWS = 16384


class Provenance(Params):
    """What an artifact was computed from."""

    vectors: str
    """The entry of ``embed.models`` that was used."""
    weights: str
    """Hash of the model that produced the vectors."""
    pairs: str
    """Hash of the pairs."""
    parameters: dict[str, Any] = {}
    """Those of the stage; empty if an older version wrote it."""

    def write(self, folder: Path) -> None:
        """Write ``provenance.json`` into an artifact's folder."""
        write_json(folder / _PROVENANCE_FILE, self.model_dump())

    @classmethod
    def read(cls, folder: Path, made_by: str) -> "Provenance":
        """Read the ``provenance.json`` of an artifact that the stage ``made_by`` writes."""
        return cls.model_validate(read_json(folder / _PROVENANCE_FILE, made_by=made_by))


@dataclass(frozen=True, kw_only=True)
class VectorStore:
    """The vectors of one encoder: a folder with ``encoder.json`` and one folder per domain."""

    folder: Path
    weights: str
    prefixes: Prefixes

    @classmethod
    def open(cls, folder: Path) -> "VectorStore":
        """Open the vectors in ``data/vectors/NAME``."""
        if folder.parent.is_dir() and not folder.is_dir():
            known = ", ".join(sorted(other.name for other in folder.parent.iterdir()))
            raise InputError(f"{folder}: no vectors of that name; available: {known}")
        encoder = read_json(folder / _ENCODER_FILE, made_by="embed")
        return cls(folder=folder, weights=encoder["weights"], prefixes=Prefixes.model_validate(encoder["prefixes"]))

    def files(self, domain: str) -> Path:
        """The folder with a domain's vectors and the keys of their texts."""
        return self.folder / file_stem(domain)

    def of(self, domain: str, *, checked: bool = True) -> "DomainVectors":
        """Memory-map one domain; ``checked`` reads all vectors once.

        Raises:
            InputError: a file is missing or malformed, or a vector is not finite.
        """
        folder = self.files(domain)
        vectors = read_array(folder / "vectors.npy", np.float16, (None, None), made_by="embed", mapped=True)
        keys = read_array(folder / "keys.npy", f"V{TEXT_KEY_BYTES}", (len(vectors),), made_by="embed", mapped=True)
        if checked:
            _check_finite(folder / "vectors.npy", vectors)
        return DomainVectors(
            folder=folder, domain=domain, prefixes=self.prefixes, words=key_words(keys), vectors=vectors
        )


@dataclass(frozen=True, kw_only=True)
class DomainVectors:
    """One domain: ``vectors`` ``(N, d)`` float16, memory-mapped, and ``words`` ``(2, N)``, their sorted text keys."""

    folder: Path
    domain: str
    prefixes: Prefixes
    words: Words
    vectors: NDArray[np.float16]

    def of(self, side: Side, texts: list[str]) -> NDArray[np.float32]:
        """Unit vectors ``(len(texts), d)`` of texts from one side of the pairs, given without their prefix.

        Raises:
            InputError: ``texts`` is no list of texts, or one has no vector.
        """
        check_texts("texts", texts)
        found: NDArray[np.float32] = self.vectors[self._rows(side, texts)].astype(np.float32)
        return found

    def of_pairs(self, parts: Iterable[PairsPart], do_parts: Callable[..., Iterable[Any]] = map) -> "PairVectors":
        """The vectors of both sides of pairs; ``do_parts`` is ``map``, or works like it.

        Raises:
            InputError: a text has no vector.
        """
        found = [np.empty((2, 0), self._row_type), *do_parts(self._rows_of_part, parts)]
        return PairVectors(vectors=self.vectors, rows=np.concatenate(found, axis=1))

    @property
    def _row_type(self) -> type[np.int32] | type[np.int64]:
        return np.int32 if len(self.vectors) <= np.iinfo(np.int32).max else np.int64

    def _rows_of_part(self, part: PairsPart) -> NDArray[Any]:
        found = [np.empty((2, 0), self._row_type)]
        for batch in part.read(SIDES):
            sides = [self._rows(side, batch[side].to_pylist()) for side in SIDES]
            found.append(np.stack(sides).astype(self._row_type))
        return np.concatenate(found, axis=1)

    def _rows(self, side: Side, texts: list[str]) -> NDArray[np.int64]:
        prefix = self.prefixes.of(self.domain, side)
        rows = find_keys(self.words, text_keys([prefix + text for text in texts]))
        if (rows < 0).any():
            text = texts[int(np.argmax(rows < 0))]
            raise InputError(f"{self.folder}: no vector for the {side} {text[:60]!r}; run the stage 'embed' again")
        return rows


Rows = slice | NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class PairVectors:
    """The vectors of N pairs, read from disk on demand; ``rows`` ``(2, N)`` holds each query's and document's row."""

    vectors: NDArray[np.float16]
    rows: NDArray[np.int32] | NDArray[np.int64]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle memory-mapped vectors as the name of their file."""
        vectors = Path(str(self.vectors.filename)) if isinstance(self.vectors, np.memmap) else self.vectors
        return _pair_vectors, (vectors, self.rows)

    def __len__(self) -> int:
        return len(self.rows[0])

    @property
    def width(self) -> int:
        """Number of dimensions d."""
        return int(self.vectors.shape[1])

    def take(self, pairs: Rows) -> "PairVectors":
        """Select some of the pairs."""
        return PairVectors(vectors=self.vectors, rows=self.rows[:, pairs])

    def queries(self, pairs: Rows) -> NDArray[np.float32]:
        """Query vectors ``(n, d)`` of the selected pairs."""
        found: NDArray[np.float32] = self.vectors[self.rows[0, pairs]].astype(np.float32)
        return found

    def scores(self, do_parts: Callable[..., Iterable[Any]] = map) -> NDArray[np.float32]:
        """Inner product of query and document of every pair, ``(N,)``; ``do_parts`` is ``map``, or works like it."""
        return np.concatenate([np.empty(0, np.float32), *do_parts(self._scores, blocks(len(self)))])

    def _scores(self, pairs: slice) -> NDArray[np.float32]:
        found: NDArray[np.float32] = np.einsum("nd,nd->n", self.queries(pairs), self.documents(pairs))
        return found

    def documents(self, pairs: Rows) -> NDArray[np.float32]:
        """Document vectors ``(n, d)`` of the selected pairs."""
        found: NDArray[np.float32] = self.vectors[self.rows[1, pairs]].astype(np.float32)
        return found

    def sums(self, pairs: Rows) -> NDArray[np.float32]:
        """Query plus document of the selected pairs, scaled to unit length ``(n, d)``; zero if they cancel out.

        The cosine of two such sums says how alike two pairs are. It averages the four similarities of their texts, and
        is worth more than any one of them.
        """
        return unit(self.queries(pairs) + self.documents(pairs))

    def likeness(self, pairs: Rows, others: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Cosines ``(n, k)`` of the sums of n pairs with those of k others each, ``others`` ``(n, k)``."""
        found, own = np.empty(others.shape, np.float32), self.sums(pairs)
        for block in blocks(len(others), rows_each=others.shape[1]):
            sums = self.sums(others[block].ravel()).reshape(*others[block].shape, -1)
            found[block] = np.einsum("nd,nkd->nk", own[block], sums)
        return found


def _pair_vectors(vectors: Path | NDArray[np.float16], rows: NDArray[np.int64]) -> PairVectors:
    mapped = np.load(vectors, mmap_mode="r") if isinstance(vectors, Path) else vectors
    return PairVectors(vectors=mapped, rows=rows)


def blocks(rows: int, rows_each: int = 1) -> Iterator[slice]:
    """Cut ``rows`` rows into slices, each small enough to hold in memory and to score against many other vectors.

    ``rows_each`` is the number of vectors read per row.
    """
    size = max(_BLOCK_ROWS // max(rows_each, 1), 1)
    return (slice(start, start + size) for start in range(0, rows, size))


def write_domain_vectors(folder: Path, keys: NDArray[np.void], vectors: NDArray[np.float16]) -> None:
    """Sort a domain's rows by key and write them."""
    order = sort_keys(key_words(keys))
    in_order = (vectors[order[block]] for block in blocks(len(order)))
    write_sorted_vectors(folder, keys[order], vectors.shape[1], in_order)


def write_sorted_vectors(
    folder: Path, keys: NDArray[np.void], width: int, vectors: Iterable[NDArray[np.float16]]
) -> None:
    """Write a domain's rows, given in key order as blocks with ``width`` columns."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "keys.npy", keys)
    header = {"descr": "<f2", "fortran_order": False, "shape": (len(keys), width)}
    with (folder / "vectors.npy").open("wb") as handle:
        np.lib.format.write_array_header_1_0(handle, header)
        for block in vectors:
            handle.write(block.astype("<f2", copy=False).tobytes())


def write_encoder(folder: Path, encoder: dict[str, Any]) -> None:
    """Write the description of a vector store's encoder, which must contain ``weights`` and ``prefixes``."""
    write_json(folder / _ENCODER_FILE, encoder)


def _check_finite(file: Path, vectors: NDArray[np.float16]) -> None:
    """Raise InputError naming the first row that contains NaN or infinity."""
    for block in blocks(len(vectors)):
        finite = np.isfinite(vectors[block]).all(axis=1)
        if not finite.all():
            row = block.start + int(np.argmin(finite))
            raise InputError(f"{file}: row {row} is not finite; check the model, then run the stage 'embed' again")
