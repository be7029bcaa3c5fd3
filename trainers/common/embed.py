"""Embeds texts, with gradient."""

from typing import Any, cast

from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional

from trainers.common.passes.precision import placed


def preprocess(model: SentenceTransformer, texts: list[str]) -> dict[str, Any]:
    """Turn texts, which must have their prefix already, into model inputs."""
    return cast(dict[str, Any], model.preprocess(texts))


def embed(model: SentenceTransformer, features: dict[str, Any]) -> Tensor:
    """Embed model inputs as unit vectors ``(n, d)``, in float32 whatever the model computes in, with gradient."""
    vectors: Tensor = model(placed(features, model.device))["sentence_embedding"]
    return functional.normalize(vectors.float(), dim=-1)
