"""CDE: one encoder embeds documents of the corpus, a second one reads each text in their light
(*Contextual Document Embeddings*, arXiv 2410.02525, section 4.2)."""

from pathlib import Path

from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.common.retriever import Retriever


def load(folder: Path, info: ModelInfo) -> Retriever:
    """The retriever of a CDE folder."""
    from batchwright.retrievers.cde.retriever import ContextualRetriever  # training does without

    return ContextualRetriever(folder, info)
