"""Embeds texts as token vectors, with gradient."""

from typing import Any

import torch
from sentence_transformers import MultiVectorEncoder
from torch import Tensor
from torch.nn import functional

from batchwright.retrievers.xtr.model import Task
from trainers.common.passes.precision import placed


def embed_tokens(model: MultiVectorEncoder, features: dict[str, Any], task: Task, length: int) -> Tensor:
    """Embed model inputs as unit vectors ``(n, length, d)``, with gradient; zero vectors mark absent tokens.

    The vectors are float32 whatever the model computes in; it has scaled them to unit length only as exactly as that.
    """
    found = model(placed(features, model.device), task=task)
    vectors = functional.normalize(found["token_embeddings"].float(), dim=-1)
    vectors = vectors.masked_fill(~found["attention_mask"].bool()[:, :, None], 0)
    padding = vectors.new_zeros(len(vectors), length - vectors.shape[1], vectors.shape[2])
    return torch.cat([vectors, padding], dim=1)
