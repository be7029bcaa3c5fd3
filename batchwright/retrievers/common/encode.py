"""Encodes texts as vectors with a trained sentence-transformers model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from batchwright.core.bar import counter

_BATCH = 64
_BLOCK = 1024  # texts per step of the progress bar; they are sorted by length within a block


def encode(model: SentenceTransformer, texts: Sequence[str]) -> NDArray[np.float32]:
    """Encode texts as unit vectors ``(N, d)`` float32."""
    blocks = []
    with counter(len(texts), desc="encode", unit="text") as progress:
        for start in range(0, len(texts), _BLOCK):
            block = list(texts[start : start + _BLOCK])
            blocks.append(model.encode(block, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False))
            progress.update(len(block))
    dimension = model.get_embedding_dimension() or 0
    return np.concatenate([np.empty((0, dimension), np.float32), *blocks])
