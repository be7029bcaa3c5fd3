"""Loads and saves sentence-transformers models."""

from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers.utils import logging

from batchwright.formats.models import check_length, loading
from batchwright.formats.prefixes import Prefix

logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def load_model(folder: Path, max_length: int, device: str | None = None) -> SentenceTransformer:
    """Load a folder in float32, without network access.

    Raises:
        InputError: the folder does not contain a model, or the model reads fewer than ``max_length`` tokens.
    """
    with loading(f"model '{folder}'"):
        model = SentenceTransformer(str(folder), device=device, local_files_only=True).float()
    check_length(f"model '{folder}'", model, max_length)
    if isinstance(model[0], StaticEmbedding):
        model[0].tokenizer.enable_truncation(max_length)  # these read whole texts, unless their tokenizer cuts them
    else:
        model.max_seq_length = max_length
    return model


def save_model(model: SentenceTransformer, folder: Path, prefix: Prefix) -> None:
    """Write ``folder``, with the prefixes as the prompts of ``encode_query`` and ``encode_document``."""
    model.prompts = {"query": prefix.query, "document": prefix.document}
    model.save(str(folder), create_model_card=False)
