"""Loads and saves models with one vector per token, as the MultiVectorEncoder of sentence-transformers."""

from pathlib import Path
from typing import Literal

from sentence_transformers import MultiVectorEncoder

from batchwright.formats.models import check_length, loading
from batchwright.formats.prefixes import Prefix

Task = Literal["query", "document"]


def load_token_model(folder: Path, max_length: int, device: str | None = None) -> MultiVectorEncoder:
    """Load a MultiVectorEncoder in float32, without network access, that cuts texts to ``max_length`` tokens.

    Raises:
        InputError: the folder is damaged, or the model reads fewer tokens.
    """
    with loading(f"model '{folder}'"):
        model = MultiVectorEncoder(str(folder), device=device, local_files_only=True).float()
    check_length(f"model '{folder}'", model, max_length)
    model.max_seq_length = max_length
    for own in ("query_length", "document_length"):  # these would override max_seq_length
        setattr(model[0], own, None)
    return model


def save_token_model(model: MultiVectorEncoder, folder: Path, prefix: Prefix) -> None:
    """Write ``folder``, with the prefixes as the prompts of ``encode_query`` and ``encode_document``."""
    model.prompts = {"query": prefix.query, "document": prefix.document}
    model.save(str(folder), create_model_card=False)
