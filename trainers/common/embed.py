"""Embeds texts, with gradient."""

from typing import Any, cast

from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional


def preprocess(model: SentenceTransformer, texts: list[str]) -> dict[str, Any]:
    """Turn texts, which must have their prefix already, into model inputs."""
    return cast(dict[str, Any], model.preprocess(texts))


def embed(model: SentenceTransformer, features: dict[str, Any]) -> Tensor:
    """Embed model inputs as unit vectors ``(n, d)``, with gradient."""
    placed = {key: value.to(model.device) if isinstance(value, Tensor) else value for key, value in features.items()}
    return functional.normalize(model(placed)["sentence_embedding"], dim=-1)
