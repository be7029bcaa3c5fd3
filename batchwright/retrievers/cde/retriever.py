"""Exact retrieval with a trained CDE model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from batchwright.core.errors import InputError
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.folder import load_contextual
from batchwright.retrievers.common.encode import encode
from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.common.retriever import Ranking
from batchwright.retrievers.common.search import search


class ContextualRetriever:
    """A ``batchwright.retrievers.Retriever`` whose context is drawn from the documents it indexes."""

    def __init__(self, folder: Path, info: ModelInfo) -> None:
        self.model = load_contextual(folder)
        self.encoder = cast(ContextualEncoder, self.model[0])
        self.encoder.max_seq_length = info.max_length
        self.info = info

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> "ContextualIndex":
        """See ``batchwright.retrievers.Retriever``; only the latest index can be searched."""
        texts = self.info.prefixes.put_before(documents, "document", domains)
        self.encoder.fit_context(texts, prompt="")
        return ContextualIndex(self, encode(self.model, texts), self.encoder.fitted)


@dataclass(frozen=True)
class ContextualIndex:
    """Documents as unit ``vectors`` ``(N, d)`` float32, encoded with ``context``."""

    retriever: ContextualRetriever
    vectors: NDArray[np.float32]
    context: Tensor | None

    def search(self, queries: Sequence[str], k: int, domains: Sequence[str] | None = None) -> Ranking:
        """See ``batchwright.retrievers.Index``.

        Raises:
            InputError: the retriever has since indexed another corpus.
        """
        if self.retriever.encoder.fitted is not self.context:
            raise InputError("this CDE model has since indexed another corpus; index these documents again")
        texts = self.retriever.info.prefixes.put_before(queries, "query", domains)
        return search(encode(self.retriever.model, texts), self.vectors, k)
