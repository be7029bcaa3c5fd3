"""The embedding pipeline: encodes every chunk that is not on disk yet, each to its own file."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.ml.inference.base import RunInference
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint
from batchwright.core.paths import VECTORS
from batchwright.core.room import check_disk
from batchwright.core.runtime import scratch
from batchwright.core.spill import spilled_rows
from batchwright.formats.models import check_length, check_whole, locate_model, model_hash
from batchwright.formats.pairs import domains, file_stem, scan_texts
from batchwright.formats.vectors import write_domain_vectors, write_encoder
from pipelines.beam.errors import guarded, raise_errors
from pipelines.beam.pipeline import pipeline, progress
from pipelines.embed.chunk_files import SUFFIX, load_chunk, save_chunk, sound
from pipelines.embed.chunks import Chunk, cut_chunks
from pipelines.embed.handler import EncodeHandler, encoding_code, load_encoder
from pipelines.embed.params import EncoderParams


def embed(pairs: Path, encoder: EncoderParams, output: Path) -> tuple[int, int]:
    """Write the vector store of one encoder to the folder ``output``.

    Returns:
        The number of vectors, and how many of them had to be encoded now.

    Raises:
        InputError: there is no such model, it reads fewer tokens than ``max_length``, or it returned vectors that are
            not finite.
    """
    weights = model_hash(locate_model(encoder.name, encoder))
    parts = scratch("embed", fingerprint(weights, encoder.max_length, encoder.batch_size, encoding_code()))
    missing = {
        domain: {
            file.name: len(chunk.texts)
            for chunk in _chunks(pairs, domain, encoder)
            if not sound(file := _file(parts, chunk))
        }
        for domain in domains(pairs)
    }
    if any(missing.values()):
        _encode_missing(pairs, encoder, parts, missing)
    total = sum(_assemble(pairs, domain, encoder, parts, output) for domain in missing)
    write_encoder(output, {**encoder.model_dump(), "weights": weights})
    return total, sum(sum(files.values()) for files in missing.values())


def _chunks(pairs: Path, domain: str, encoder: EncoderParams) -> Iterator[Chunk]:
    sides = [(side, encoder.prefixes.of(domain, side)) for side in ("query", "document")]
    return cut_chunks(prefix + text for side, prefix in sides for text in scan_texts(pairs, domain, side))


def _encode_missing(pairs: Path, encoder: EncoderParams, parts: Path, missing: dict[str, dict[str, int]]) -> None:
    """Encode ``missing``: the number of texts in each file that is to be written, by domain."""
    texts = [(name, count) for files in missing.values() for name, count in files.items()]
    total = sum(count for _, count in texts)
    _check_model(encoder, total, parts)

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


def _check_model(encoder: EncoderParams, texts: int, parts: Path) -> None:
    """Say what is wrong with the model, or that its vectors need more disk: from Beam's workers, a traceback comes."""
    model = load_encoder(encoder)
    check_whole(f"model '{encoder.name}'", locate_model(encoder.name, encoder), model)
    check_length(f"model '{encoder.name}'", model, encoder.max_length)
    size = 2 * texts * (model.get_embedding_dimension() or 0)
    check_disk({parts: size, VECTORS: size}, f"encoding {texts:,} texts")


def _write_chunk(parts: Path, batch: pa.RecordBatch) -> None:
    column = batch["vector"]
    vectors: NDArray[np.float16] = column.values.to_numpy().reshape(len(column), -1)
    metadata = {key.decode(): value.decode() for key, value in batch.schema.metadata.items()}
    if not np.isfinite(vectors).all():
        raise InputError(f"domain '{metadata['domain']}': the encoder returned NaN or infinity; check its weights")
    save_chunk(parts / f"{metadata['chunk']}{SUFFIX}", vectors)


def _assemble(pairs: Path, domain: str, encoder: EncoderParams, parts: Path, output: Path) -> int:
    vectors = spilled_rows(load_chunk(_file(parts, chunk)) for chunk in _chunks(pairs, domain, encoder))
    keys = spilled_rows(chunk.keys for chunk in _chunks(pairs, domain, encoder))
    write_domain_vectors(output / file_stem(domain), keys, vectors)
    return len(keys)


def _file(parts: Path, chunk: Chunk) -> Path:
    return parts / f"{chunk.name}{SUFFIX}"
