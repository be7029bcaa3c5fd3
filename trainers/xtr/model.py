"""Models with a vector a token, as sentence-transformers' MultiVectorEncoder."""

import json
from pathlib import Path
from typing import Any, Literal

import torch
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from torch import Tensor, nn

from formats.errors import InputError
from formats.models import loading
from formats.prefixes import Prefix
from trainers.sentence_model import check_length, load_model

WIDTH = 128

Task = Literal["query", "document"]


def start_from(start: Path, max_length: int, device: str) -> MultiVectorEncoder:
    """A model whose encoder begins as that of ``start``; the projection is new, unless ``start`` has vectors a token.

    The projection begins with orthonormal rows: inner products come through nearly as they are.

    Raises:
        InputError: there is no such model, it has no transformer encoder, or it takes fewer tokens.
    """
    if has_token_vectors(start):
        return load_token_model(start, max_length, device)
    encoder = load_model(start, max_length, "cpu")[0]
    if not isinstance(encoder, Transformer):
        raise InputError(f"model '{start}': begins with {type(encoder).__name__}; XTR needs a transformer encoder")
    width = encoder.get_embedding_dimension()
    projection = Dense(
        width, WIDTH, bias=False, activation_function=nn.Identity(), module_input_name="token_embeddings"
    )
    nn.init.orthogonal_(projection.linear.weight)
    unit = Normalize(module_input_name="token_embeddings")
    return MultiVectorEncoder(
        modules=[encoder, projection, MultiVectorMask(), unit], device=device, similarity_fn_name="meanmaxsim"
    )


def has_token_vectors(folder: Path) -> bool:
    """Whether the folder holds a MultiVectorEncoder."""
    file = folder / "config_sentence_transformers.json"
    with loading(f"model '{folder}'"):
        return file.exists() and json.loads(file.read_text(encoding="utf-8")).get("model_type") == "MultiVectorEncoder"


def load_token_model(folder: Path, max_length: int, device: str | None = None) -> MultiVectorEncoder:
    """Load a MultiVectorEncoder in float32, without network, that cuts texts after ``max_length`` tokens.

    Raises:
        InputError: the folder is damaged, or its model takes fewer tokens.
    """
    with loading(f"model '{folder}'"):
        model = MultiVectorEncoder(str(folder), device=device, local_files_only=True).float()
    check_length(folder, model, max_length)
    model.max_seq_length = max_length
    for own in ("query_length", "document_length"):  # which would win over max_seq_length
        setattr(model[0], own, None)
    return model


def save_token_model(model: MultiVectorEncoder, folder: Path, prefix: Prefix) -> None:
    """Write ``folder``; ``encode_query`` and ``encode_document`` will put the prefixes before texts."""
    model.prompts = {"query": prefix.query, "document": prefix.document}
    model.save(str(folder), create_model_card=False)


def embed_tokens(model: MultiVectorEncoder, features: dict[str, Any], task: Task, length: int) -> Tensor:
    """Unit vectors ``(n, length, d)`` with gradient; rows of zeros are no tokens."""
    placed = {key: value.to(model.device) if isinstance(value, Tensor) else value for key, value in features.items()}
    found = model(placed, task=task)
    vectors: Tensor = found["token_embeddings"].masked_fill(~found["attention_mask"].bool()[:, :, None], 0)
    padding = vectors.new_zeros(len(vectors), length - vectors.shape[1], vectors.shape[2])
    return torch.cat([vectors, padding], dim=1)
