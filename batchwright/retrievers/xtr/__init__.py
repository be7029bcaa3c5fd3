"""XTR: one vector per token; documents are found, and scored, by the tokens that a query's tokens retrieve
(*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval*, arXiv 2304.01982)."""

from pathlib import Path

from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.common.retriever import Retriever


def load(folder: Path, info: ModelInfo) -> Retriever:
    """The retriever of an XTR folder."""
    from batchwright.retrievers.xtr.retriever import TokenRetriever  # brings FAISS, which training does without

    return TokenRetriever(folder, info)
