"""Vectors provided by the user, scaled to unit length, in one pass over the files for all domains."""

import tempfile
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from batchwright.core import grid
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256, files_fingerprint, fingerprint, text_keys
from batchwright.core.runtime import scratch
from batchwright.core.spill import Words, find_keys, key_words, spilled, spilled_rows, unique_order
from batchwright.core.terminal import counter
from batchwright.formats.models import SIDES, Prefixes
from batchwright.formats.pairs import domains, file_stem, scan_texts
from batchwright.formats.vectors import blocks, write_encoder, write_sorted_vectors
from pipelines.embed.chunks import reordered, unique_keys
from pipelines.embed.params import FileParams
from pipelines.embed.rows import ahead, count_rows, read_rows
from pipelines.files import find_files

_CODE = [Path(grid.__file__), *map(Path(__file__).with_name, ("file.py", "rows.py"))]
_ROUNDING = 2e-3  # a few float16 steps near 1


class Spool:
    """One vector for each of ``texts`` rows, written to an open file in order of arrival."""

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
        new_rows, first = np.unique(rows[new], return_index=True)
        self._handle.write(vectors[new[first]].tobytes())
        self._places[new_rows] = self._written + np.arange(len(new_rows))
        self._written += len(new_rows)
        differs = np.zeros(len(rows), np.bool_)
        again = np.delete(np.arange(len(rows)), new[first])
        differs[again] = np.any(np.abs(self.take(rows[again]) - vectors[again]) > _ROUNDING, axis=1)
        return differs

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """Read the vectors ``(len(rows), width)`` of rows, none of which may be missing."""
        self._handle.flush()
        kept: NDArray[np.float16] = np.memmap(self._handle, np.float16, "r", shape=(self._written, self.width))
        return kept[self._places[rows]]


def embed(pairs: Path, params: FileParams, output: Path) -> tuple[int, int]:
    """Write the vector store to the folder ``output``.

    Holds in memory a batch of rows, and about 40 bytes per unique text of all domains.

    Returns:
        The number of vectors, twice, because every run reads all of them.

    Raises:
        InputError: a text has no vector, a row is invalid, or two rows differ on the vector of a text.
    """
    files = find_files(params.path)
    contents = [file_sha256(Path(file)) for file in files]
    weights = fingerprint(contents, files_fingerprint(_CODE))
    keys_of = {domain: _keys(pairs, domain) for domain in domains(pairs)}
    every = spilled_rows(keys_of.values())
    words = key_words(reordered(every, unique_order(every)))
    with tempfile.TemporaryFile(dir=scratch("embed", weights)) as handle:
        spool = _collect(files, words, Spool(handle, words.shape[1]))
        for domain, keys in keys_of.items():
            _check_complete(params.path, pairs, domain, keys, words, spool)
            in_order = (spool.take(find_keys(words, keys[block])) for block in blocks(len(keys)))
            write_sorted_vectors(output / file_stem(domain), keys, spool.width, in_order)
    total = sum(map(len, keys_of.values()))
    write_encoder(output, {**params.model_dump(), "prefixes": Prefixes().model_dump(), "weights": weights})
    return total, total


def _keys(pairs: Path, domain: str) -> NDArray[np.void]:
    return unique_keys(chain.from_iterable(scan_texts(pairs, domain, side) for side in SIDES))


def _collect(files: list[str], words: Words, spool: Spool) -> Spool:
    """Spool the vectors of the texts whose keys are ``words``; the vectors of other texts are only checked."""
    with counter(count_rows(files), desc="embed, file", unit="row") as progress:
        for batch in ahead(read_rows(files)):
            places = find_keys(words, text_keys(batch.texts))
            known = np.flatnonzero(places >= 0)
            differs = spool.add(places[known], batch.vectors[known])
            if differs.any():
                row = int(known[np.argmax(differs)])
                raise InputError(
                    f"{batch.file}: row {batch.first + row}: differs from an earlier row's vector "
                    f"for the text {batch.texts[row][:60]!r}; remove one of the two rows"
                )
            progress.update(len(batch.texts))
    return spool


def _check_complete(path: str, pairs: Path, domain: str, keys: NDArray[np.void], words: Words, spool: Spool) -> None:
    """Raise InputError if a text with one of ``keys`` has no vector."""
    missing = [keys[block][spool.missing(find_keys(words, keys[block]))] for block in blocks(len(keys))]
    if count := sum(map(len, missing)):
        wanted = next(block[0] for block in missing if len(block)).tobytes()
        sides = chain.from_iterable(scan_texts(pairs, domain, side) for side in SIDES)
        text = next(text for text in sides if text_keys([text]).tobytes() == wanted)
        raise InputError(
            f"{path}: no vector for {count:,} of {len(keys):,} texts of domain '{domain}', "
            f"such as {text[:60]!r}; provide one for every query and document, exactly as written in {pairs}"
        )
