"""Models with a vector a token, as sentence-transformers' MultiVectorEncoder."""

from pathlib import Path
from typing import Literal

from sentence_transformers import MultiVectorEncoder

from batchwright.formats.models import loading
from batchwright.formats.prefixes import Prefix
from batchwright.retrievers.common.sentence_model import check_length

Task = Literal["query", "document"]


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
