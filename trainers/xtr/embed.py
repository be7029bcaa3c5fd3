"""Embeds texts as token vectors, with gradient."""

from typing import Any

import torch
from sentence_transformers import MultiVectorEncoder
from torch import Tensor

from batchwright.retrievers.xtr.model import Task


def embed_tokens(model: MultiVectorEncoder, features: dict[str, Any], task: Task, length: int) -> Tensor:
    """Embed model inputs as unit vectors ``(n, length, d)``, with gradient; zero vectors mark absent tokens."""
    placed = {key: value.to(model.device) if isinstance(value, Tensor) else value for key, value in features.items()}
    found = model(placed, task=task)
    vectors: Tensor = found["token_embeddings"].masked_fill(~found["attention_mask"].bool()[:, :, None], 0)
    padding = vectors.new_zeros(len(vectors), length - vectors.shape[1], vectors.shape[2])
    return torch.cat([vectors, padding], dim=1)
