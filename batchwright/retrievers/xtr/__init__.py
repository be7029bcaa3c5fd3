"""XTR: one vector per token; documents are found and scored by the tokens that a query's tokens retrieve
(*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval*, arXiv 2304.01982)."""

from pathlib import Path

from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.common.retriever import Retriever


def load(folder: Path, info: ModelInfo) -> Retriever:
    """Load an XTR folder as a retriever."""
    from batchwright.retrievers.xtr.retriever import TokenRetriever  # imports FAISS, which training does not need

    return TokenRetriever(folder, info)
