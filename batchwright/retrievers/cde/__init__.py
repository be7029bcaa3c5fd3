"""CDE: one encoder embeds documents of the corpus, and a second encodes each text with these as context
(*Contextual Document Embeddings*, arXiv 2410.02525, section 4.2)."""

from pathlib import Path

from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.common.retriever import Retriever


def load(folder: Path, info: ModelInfo) -> Retriever:
    """Load a CDE folder as a retriever."""
    from batchwright.retrievers.cde.retriever import ContextualRetriever  # not needed by training

    return ContextualRetriever(folder, info)
