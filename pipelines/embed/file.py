"""Vectors provided by the user, scaled to unit length, in one pass over the files for all domains."""

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.bar import counter
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256, files_fingerprint, fingerprint, text_keys
from batchwright.core.runtime import scratch
from batchwright.formats.pairs import domains, file_stem, read_pairs
from batchwright.formats.prefixes import Prefixes
from batchwright.formats.vectors import blocks, find_keys, key_words, write_encoder, write_sorted_vectors
from pipelines.embed.params import FileParams
from pipelines.embed.rows import count_rows, read_rows
from pipelines.embed.spool import Spool
from pipelines.embed.texts import in_key_order
from pipelines.files import find_files

_CODE = ("file.py", "rows.py", "spool.py")


def embed(pairs: Path, params: FileParams, output: Path) -> tuple[int, int]:
    """Write the vector store to the folder ``output``.

    Holds in memory the texts of one domain, a batch of rows, and about 50 bytes per unique text of all domains.

    Returns:
        The number of vectors, twice, because every run reads all of them.

    Raises:
        InputError: a text has no vector, a row is invalid, or two rows differ on the vector of a text.
    """
    files = find_files(params.path)
    contents = [file_sha256(Path(file)) for file in files]
    weights = fingerprint(contents, files_fingerprint(Path(__file__).with_name(name) for name in _CODE))
    words = np.unique(np.concatenate([key_words(_texts(pairs, domain)[1]) for domain in domains(pairs)]))
    with tempfile.TemporaryFile(dir=scratch("embed", weights)) as handle:
        spool = _collect(files, words, Spool(handle, len(words)))
        total = 0
        for domain in domains(pairs):
            texts, keys = _texts(pairs, domain)
            found = find_keys(words, keys)
            _check_complete(params.path, pairs, domain, texts, spool.missing[found])
            in_order = (spool.take(found[block]) for block in blocks(len(found)))
            write_sorted_vectors(output / file_stem(domain), keys, spool.width, in_order)
            total += len(keys)
    write_encoder(output, {**params.model_dump(), "prefixes": Prefixes().model_dump(), "weights": weights})
    return total, total


def _texts(pairs: Path, domain: str) -> tuple[list[str], NDArray[np.void]]:
    table = read_pairs(pairs, domain)
    return in_key_order([*table["query"].to_pylist(), *table["document"].to_pylist()])


def _collect(files: list[str], words: NDArray[np.void], spool: Spool) -> Spool:
    """Spool the vectors of the texts whose keys are ``words``; the vectors of other texts are only checked."""
    with counter(count_rows(files), desc="embed, file", unit="row") as progress:
        for batch in read_rows(files):
            found = find_keys(words, text_keys(batch.texts))
            known = np.flatnonzero(found >= 0)
            differs = spool.add(found[known], batch.vectors[known])
            if differs.any():
                row = int(known[np.argmax(differs)])
                raise InputError(
                    f"{batch.file}: row {batch.first + row}: differs from an earlier row's vector "
                    f"for the text {batch.texts[row][:60]!r}; remove one of the two rows"
                )
            progress.update(len(batch.texts))
    return spool


def _check_complete(path: str, pairs: Path, domain: str, texts: list[str], missing: NDArray[np.bool_]) -> None:
    if missing.any():
        text = texts[int(np.argmax(missing))]
        raise InputError(
            f"{path}: no vector for {int(missing.sum()):,} of {len(texts):,} texts of domain '{domain}', "
            f"such as {text[:60]!r}; provide one for every query and document, exactly as written in {pairs}"
        )
