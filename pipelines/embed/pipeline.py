"""The embedding pipeline: encodes every chunk that is not on disk yet, each to its own file.

A chunk's file is its array and a SHA-256, so that no damaged one is used.
"""

import hashlib
import io
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.ml.inference.base import RunInference
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.modules import Router

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint
from batchwright.core.runtime import scratch
from batchwright.core.spill import spilled_rows
from batchwright.formats.lengths import check_length, check_reading
from batchwright.formats.models import SIDES, Prefixes, check_whole, loading, locate_model, model_hash, warn_of_pooling
from batchwright.formats.pairs import domains, file_stem, scan_texts
from batchwright.formats.prompts import own_prefixes
from batchwright.formats.vectors import write_domain_vectors, write_encoder
from pipelines.beam.pipeline import pipeline, progress
from pipelines.beam.spread import guarded, raise_errors
from pipelines.embed.chunks import Chunk, cut_chunks
from pipelines.embed.handler import EncodeHandler, encoding_code, load_encoder
from pipelines.embed.params import EncoderParams

_SUFFIX = ".chunk"
_DIGEST = hashlib.sha256().digest_size


def embed(pairs: Path, encoder: EncoderParams, output: Path) -> tuple[int, int]:
    """Write the vector store of one encoder to the folder ``output``.

    Returns:
        The number of vectors, and how many of them had to be encoded now.

    Raises:
        InputError: there is no such model, it reads fewer tokens than ``max_length``, or it returned vectors that are
            not finite.
    """
    folder = locate_model(encoder.name, encoder)
    if encoder.prefixes is None:
        own = own_prefixes(folder, f"embed.models: {encoder.name}")
        encoder = encoder.model_copy(update={"prefixes": own})
    weights = model_hash(folder)
    parts = scratch("embed", fingerprint(weights, encoder.max_length, encoder.batch_size, encoding_code()))
    missing = {
        domain: {
            file.name: len(chunk.texts)
            for chunk in _chunks(pairs, domain, encoder)
            if not _is_sound(file := _file(parts, chunk))
        }
        for domain in domains(pairs)
    }
    if any(missing.values()):
        _encode_missing(pairs, encoder, parts, missing)
    total = sum(_assemble(pairs, domain, encoder, parts, output) for domain in missing)
    write_encoder(output, {**encoder.model_dump(), "weights": weights})
    return total, sum(sum(files.values()) for files in missing.values())


def _chunks(pairs: Path, domain: str, encoder: EncoderParams) -> Iterator[Chunk]:
    prefixes = encoder.prefixes or Prefixes()
    sides = [(side, prefixes.of(domain, side)) for side in SIDES]
    return cut_chunks(prefix + text for side, prefix in sides for text in scan_texts(pairs, domain, side))


def _file(parts: Path, chunk: Chunk) -> Path:
    return parts / f"{chunk.name}{_SUFFIX}"


def _is_sound(file: Path) -> bool:
    """Whether the file is there and as it was written; a damaged one is set aside, with a warning."""
    if not file.exists():
        return False
    try:
        _load_chunk(file)
    except InputError:
        file.replace(file.with_suffix(".damaged"))
        print(f"warning: {file}: damaged, and set aside; its texts are encoded again", file=sys.stderr)
        return False
    return True


def _encode_missing(pairs: Path, encoder: EncoderParams, parts: Path, missing: dict[str, dict[str, int]]) -> None:
    """Encode ``missing``: the number of texts in each file that is to be written, by domain."""
    texts = [(name, count) for files in missing.values() for name, count in files.items()]
    total = sum(count for _, count in texts)
    _check_model(encoder)

    def read(domain: str) -> Iterator[pa.RecordBatch]:
        for chunk in _chunks(pairs, domain, encoder):
            if _file(parts, chunk).name in missing[domain]:
                schema = pa.schema([("text", pa.string())], metadata={"chunk": chunk.name, "domain": domain})
                yield pa.record_batch([chunk.texts], schema=schema)

    def done() -> int:
        written = {file.name for file in parts.iterdir()}
        return sum(count for name, count in texts if name in written)

    with tempfile.TemporaryDirectory(dir=parts) as errors:
        with progress(total, "embed", "text", done), pipeline() as p:
            _ = (
                p
                | "Domains" >> beam.Create([domain for domain, files in missing.items() if files])
                | "Read" >> beam.FlatMap(read).with_output_types(pa.RecordBatch)
                | "Spread" >> beam.Reshuffle()
                | "Encode" >> RunInference(EncodeHandler(encoder))
                | "Write" >> beam.Map(guarded(partial(_write_chunk, parts), Path(errors)))
            )
        raise_errors(Path(errors))


def _check_model(encoder: EncoderParams) -> None:
    """Say what is wrong with the model: from Beam's workers, a traceback would come."""
    name, folder = f"model '{encoder.name}'", locate_model(encoder.name, encoder)
    with loading(name):
        model = load_encoder(encoder)
    if isinstance(model[0], Router):
        raise InputError(
            f"{name}: reads queries otherwise than documents, but a text has one vector; take another model"
        )
    check_whole(name, folder, model)
    warn_of_pooling(name, folder, model)
    check_length(name, model, encoder.max_length)
    check_reading(name, model, encoder.prefixes or Prefixes())


def _write_chunk(parts: Path, batch: pa.RecordBatch) -> None:
    """Write the vectors of a chunk, atomically."""
    column = batch["vector"]
    vectors: NDArray[np.float16] = column.values.to_numpy().reshape(len(column), -1)
    metadata = {key.decode(): value.decode() for key, value in batch.schema.metadata.items()}
    if not np.isfinite(vectors).all():
        raise InputError(f"domain '{metadata['domain']}': the encoder returned NaN or infinity; check its weights")
    buffer = io.BytesIO()
    np.save(buffer, vectors)
    with atomic_file(parts / f"{metadata['chunk']}{_SUFFIX}") as temporary:
        temporary.write_bytes(buffer.getvalue() + hashlib.sha256(buffer.getvalue()).digest())


def _assemble(pairs: Path, domain: str, encoder: EncoderParams, parts: Path, output: Path) -> int:
    vectors = spilled_rows(_load_chunk(_file(parts, chunk)) for chunk in _chunks(pairs, domain, encoder))
    keys = spilled_rows(chunk.keys for chunk in _chunks(pairs, domain, encoder))
    write_domain_vectors(output / file_stem(domain), keys, vectors)
    return len(keys)


def _load_chunk(file: Path) -> NDArray[np.float16]:
    """Read the vectors ``(n, d)`` of a chunk.

    Raises:
        InputError: the file is damaged.
    """
    content = file.read_bytes()
    array, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(array).digest() != digest:
        raise InputError(f"{file}: damaged; run the stage 'embed' again, which encodes these texts anew")
    vectors: NDArray[np.float16] = np.load(io.BytesIO(array))
    return vectors
