"""Retrieval with one vector per token."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.models import model_hash
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.common.retriever import Given, Ranking
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import TokenVectors, encode_blocks, encode_tokens, load_token_model
from batchwright.retrievers.xtr.rank import TOKENS, Imputation, search_tokens

LEARN_FROM = 2**18
"""Tokens of documents, drawn at random, from which an index on disk learns its codes."""


class TokenRetriever:
    """A ``batchwright.retrievers.Retriever`` that scores documents by the retrieved tokens alone, as XTR does."""

    def __init__(self, folder: Path, info: ModelInfo) -> None:
        self.model = load_token_model(folder, info.max_length, prefixes=info.prefixes)
        self.model_hash = model_hash(folder)
        self.info = info

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> "TokenSearch":
        """See ``batchwright.retrievers.Retriever``; the index is exact and in memory."""
        empty = TokenIndex.empty(self.model.get_embedding_dimension() or 0, self.model_hash)
        return TokenSearch(self, empty).add(documents, domains)

    def index_on_disk(
        self, documents: Sequence[str], folder: Path, domains: Sequence[str] | None = None
    ) -> "TokenSearch":
        """``index`` for collections beyond memory: compressed, in files in ``folder``, which must outlive it.

        Raises:
            InputError: these are no lists of texts, or they have too few tokens to learn a compression from.
        """
        texts = self.info.prefixes.put_before(documents, "document", domains)
        order = np.random.default_rng(0).permutation(len(texts))
        blocks = [np.empty((0, self.model.get_embedding_dimension() or 0), np.float32)]
        tokens, seen = 0, 0
        for block in encode_blocks(self.model, [texts[number] for number in order], "document"):
            blocks.append(block.vectors)
            tokens, seen = tokens + len(block.vectors), seen + len(block.lengths)
            if tokens >= LEARN_FROM:
                break
        expected = tokens * len(texts) // max(seen, 1)
        learned = TokenIndex.spilling(np.concatenate(blocks), expected, self.model_hash, folder)
        return TokenSearch(self, learned).add(documents, domains)

    def open(self, folder: Path | str) -> "TokenSearch":
        """Memory-map an index that ``TokenSearch.tokens.save`` wrote.

        Raises:
            InputError: it is missing or damaged, or was built with another model.
        """
        return TokenSearch(self, TokenIndex.open(Path(folder), self.model_hash))

    def encode_documents(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> TokenVectors:
        """Encode documents as token vectors."""
        return encode_tokens(self.model, self.info.prefixes.put_before(documents, "document", domains), "document")

    def encode_queries(self, queries: Sequence[str], domains: Sequence[str] | None = None) -> TokenVectors:
        """Encode queries as token vectors."""
        return encode_tokens(self.model, self.info.prefixes.put_before(queries, "query", domains), "query")

    def score(
        self, queries: Sequence[str], documents: Sequence[Sequence[str]], domain: str | None = None
    ) -> NDArray[np.float32]:
        """See ``batchwright.retrievers.Retriever``."""
        given, of = Given.of(queries, documents), None if domain is None else [domain]
        asked = _texts_of(self.encode_queries(queries, of and of * len(queries)))
        found = _texts_of(self.encode_documents(given.texts, of and of * len(given.texts)))
        return np.array(
            [
                (asked[owner] @ found[place].T).max(axis=1).mean() if len(asked[owner]) and len(found[place]) else 0
                for owner, place in zip(given.owners, given.places, strict=True)
            ],
            np.float32,
        )


def _texts_of(tokens: TokenVectors) -> list[NDArray[np.float64]]:
    """The vectors ``(l, d)`` of each text's tokens."""
    return np.split(tokens.vectors.astype(np.float64), np.cumsum(tokens.lengths)[:-1])


class TokenSearch:
    """A retriever and the index of the document ``tokens`` that it searches."""

    def __init__(self, retriever: TokenRetriever, tokens: TokenIndex) -> None:
        self.retriever, self.tokens = retriever, tokens

    def add(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> "TokenSearch":
        """Add documents, numbered on from the last one, and return self."""
        texts = self.retriever.info.prefixes.put_before(documents, "document", domains)
        for block in encode_blocks(self.retriever.model, texts, "document"):
            self.tokens.add(block.vectors, block.lengths)
        return self

    def delete(self, documents: Sequence[int]) -> "TokenSearch":
        """Delete documents by number, and return self; the others keep their numbers."""
        self.tokens.delete(documents)
        return self

    def search(
        self,
        queries: Sequence[str],
        k: int,
        domains: Sequence[str] | None = None,
        *,
        tokens: int = TOKENS,
        imputation: Imputation = "last",
    ) -> Ranking:
        """See ``batchwright.retrievers.Index``; ``tokens`` and ``imputation`` are those of ``rank.search_tokens``."""
        return search_tokens(self.tokens, self.retriever.encode_queries(queries, domains), k, tokens, imputation)
