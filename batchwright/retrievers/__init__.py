"""Retrieval with trained models: load one, index documents, search."""

from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.common.retriever import Index, Ranking, Retriever, load_retriever

__all__ = ["Index", "ModelInfo", "Ranking", "Retriever", "load_retriever"]
