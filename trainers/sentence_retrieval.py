"""Exact retrieval with one vector a text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.encoding import encode
from trainers.search import search
from trainers.sentence_model import load_model


def retrieve(
    model: Path, queries: Sequence[str], documents: Sequence[str], k: int, max_length: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Best documents of each query by cosine; see ``trainers.variants.Variant``."""
    encoder = load_model(model, max_length)
    return search(encode(encoder, queries, "queries"), encode(encoder, documents, "documents"), k)
