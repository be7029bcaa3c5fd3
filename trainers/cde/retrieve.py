"""Exact retrieval with a trained CDE."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from trainers.cde.contextual_encoder import ContextualEncoder
from trainers.cde.folder import is_contextual, load_contextual
from trainers.encoding import encode
from trainers.search import search
from trainers.sentence_model import load_model


def retrieve(
    model: Path, queries: Sequence[str], documents: Sequence[str], k: int, max_length: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Best documents of each query by cosine, the context drawn from ``documents``.

    A start model, which is no CDE yet, retrieves as the biencoder it is; see ``trainers.variants.Variant``.
    """
    if is_contextual(model):
        encoder = load_contextual(model)
        cast(ContextualEncoder, encoder[0]).fit_context(documents, prompt="")  # texts come with their prefix
    else:
        encoder = load_model(model, max_length)
    return search(encode(encoder, queries, "queries"), encode(encoder, documents, "documents"), k)
