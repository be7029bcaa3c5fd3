"""Exact retrieval with one vector per text, from any sentence-transformers model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from batchwright.retrievers.common.encode import encode
from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.common.retriever import Ranking
from batchwright.retrievers.common.search import search
from batchwright.retrievers.common.sentence_model import load_model


class DenseRetriever:
    """A ``batchwright.retrievers.Retriever`` that ranks documents by cosine similarity."""

    def __init__(self, folder: Path, info: ModelInfo) -> None:
        self.model: SentenceTransformer = load_model(folder, info.max_length)
        self.info = info

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> "VectorIndex":
        """See ``batchwright.retrievers.Retriever``."""
        return VectorIndex(self, encode(self.model, self.info.prefixes.put_before(documents, "document", domains)))

    def encode_queries(self, queries: Sequence[str], domains: Sequence[str] | None = None) -> NDArray[np.float32]:
        """Encode queries as unit vectors ``(Q, d)``."""
        return encode(self.model, self.info.prefixes.put_before(queries, "query", domains))


@dataclass(frozen=True)
class VectorIndex:
    """Documents as unit ``vectors`` ``(N, d)`` float32, searched exactly."""

    retriever: DenseRetriever
    vectors: NDArray[np.float32]

    def search(self, queries: Sequence[str], k: int, domains: Sequence[str] | None = None) -> Ranking:
        """See ``batchwright.retrievers.Index``."""
        return search(self.retriever.encode_queries(queries, domains), self.vectors, k)
