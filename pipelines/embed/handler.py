"""The RunInference handler: each input record batch is one chunk of texts, each output one chunk of vectors."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from apache_beam.ml.inference.base import ModelHandler
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.core import grid
from batchwright.core.fingerprint import files_fingerprint, fingerprint
from batchwright.formats.models import loading, locate_model
from pipelines.embed.params import EncoderParams


class EncodeHandler(ModelHandler[pa.RecordBatch, pa.RecordBatch, SentenceTransformer]):  # type: ignore[misc]
    """Encodes the column ``text`` and passes on the schema's metadata, which names the chunk."""

    def __init__(self, encoder: EncoderParams) -> None:
        super().__init__()
        self._encoder = encoder

    def load_model(self) -> SentenceTransformer:
        """Load the encoder, once per worker process."""
        return load_encoder(self._encoder)

    def run_inference(
        self,
        batch: Sequence[pa.RecordBatch],
        model: SentenceTransformer,
        inference_args: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Iterable[pa.RecordBatch]:
        """Yield one record batch of ``vector`` (float16 lists of length d) per record batch of ``text``."""
        for chunk in batch:
            vectors = encode(model, chunk["text"].to_pylist(), self._encoder.batch_size)
            flat = pa.array(vectors.ravel(), type=pa.float16())
            column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
            yield pa.record_batch([column], ["vector"]).replace_schema_metadata(chunk.schema.metadata)

    def batch_elements_kwargs(self) -> Mapping[str, Any]:
        """Pass one chunk at a time: a chunk is already a batch."""
        return {"min_batch_size": 1, "max_batch_size": 1}

    def get_metrics_namespace(self) -> str:
        """Namespace of RunInference's metrics."""
        return "embed"


def load_encoder(encoder: EncoderParams) -> SentenceTransformer:
    """Load the model so that it reads at most ``max_length`` tokens and adds no prompt of its own."""
    with loading(f"model '{encoder.name}'"):
        model = SentenceTransformer(str(locate_model(encoder.name, encoder)))
    first = model[0]
    if isinstance(first, StaticEmbedding):  # has no max_seq_length to set
        first.tokenizer.enable_truncation(encoder.max_length)
    else:
        model.max_seq_length = encoder.max_length
    model.default_prompt_name = None
    return model


def encode(model: SentenceTransformer, texts: list[str], batch_size: int) -> NDArray[np.float16]:
    """Encode texts as unit vectors ``(N, d)`` on the grid, in the same order."""
    vectors: NDArray[np.float32] = model.encode(texts, batch_size=batch_size, show_progress_bar=False)
    return grid.unit(vectors).astype(np.float16)


def encoding_code() -> str:
    """Fingerprint of the code that determines a vector: this file, the grid and the versions of the libraries."""
    libraries = [version(name) for name in ("torch", "transformers", "tokenizers", "sentence-transformers")]
    return fingerprint(files_fingerprint([Path(__file__), Path(grid.__file__)]), libraries)
