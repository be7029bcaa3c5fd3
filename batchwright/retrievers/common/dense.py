"""Exact retrieval with one vector per text, from any sentence-transformers model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor

from batchwright.core.arguments import check_count, check_texts
from batchwright.core.errors import InputError
from batchwright.core.terminal import bar, counter
from batchwright.formats.models import Side
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from batchwright.retrievers.common.retriever import Given, Ranking

_QUERIES, _QUERIES_ON_GPU = 1024, 4096
_DOCUMENTS = 16384
_LAST = 2**32 - 1


def search(
    queries: NDArray[np.float32], documents: NDArray[np.float32], k: int, device: torch.device | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the best of ``documents`` ``(N, d)`` for each of ``queries`` ``(Q, d)``, by inner product.

    Returns indices and inner products ``(Q, min(k, N))``, best first; equal scores are ordered by index. Scores are
    computed in float64 and rounded, so that their order does not depend on the processor. If ``device`` is a GPU, it
    compares one block of queries with one of documents at a time.

    Raises:
        InputError: ``k`` is below 1.
    """
    check_count("k", k)
    k = min(k, len(documents))
    indices = np.empty((len(queries), k), np.int64)
    scores = np.empty((len(queries), k), np.float32)
    on_gpu = device is not None and device.type == "cuda"
    at_once = _QUERIES_ON_GPU if on_gpu else _QUERIES
    for start in bar(range(0, len(queries), at_once), desc="search", unit="block"):
        rows = slice(start, start + at_once)
        found = (
            _search_on(device, queries[rows], documents, k) if on_gpu else _search_block(queries[rows], documents, k)
        )
        indices[rows], scores[rows] = found
    return indices, scores


def _search_on(
    device: torch.device | None, queries: NDArray[np.float32], documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Search as ``_search_block`` does, with torch on ``device``."""
    exact = torch.from_numpy(queries).to(device).double()
    best = torch.empty(len(queries), 0, dtype=torch.int64, device=device)
    for start in range(0, len(documents), _DOCUMENTS):
        block = torch.from_numpy(documents[start : start + _DOCUMENTS]).to(device).double()
        keys = _keys((exact @ block.T).float(), start)
        best = torch.cat([best, keys], dim=1)
        best = best.topk(min(k, best.shape[1]), dim=1).values
    bits = (best >> 32).int()
    scores = _ordered(bits).view(torch.float32)
    return (_LAST - (best & _LAST)).cpu().numpy(), scores.cpu().numpy()


def _keys(scores: Tensor, start: int) -> Tensor:
    """Whole numbers ``(Q, n)`` that order by score and, if equal, by index from ``start`` on, the lowest first."""
    bits = _ordered((scores + 0.0).view(torch.int32))  # no negative zeros
    places = torch.arange(start, start + scores.shape[1], device=scores.device)
    return (bits.long() << 32) | (_LAST - places)


def _ordered(bits: Tensor) -> Tensor:
    """Let the bits of float32, as int32, order as the numbers do; twice, the bits come back."""
    return bits ^ ((bits >> 31) & (2**31 - 1))


def _search_block(
    queries: NDArray[np.float32], documents: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    indices = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0), np.float32)
    exact = queries.astype(np.float64)
    for start in range(0, len(documents), _DOCUMENTS):
        block = documents[start : start + _DOCUMENTS]
        numbers = np.broadcast_to(np.arange(start, start + len(block)), (len(queries), len(block)))
        indices = np.concatenate([indices, numbers], axis=1)
        scores = np.concatenate([scores, exact @ block.T.astype(np.float64)], axis=1, dtype=np.float32)
        # Columns stay in index order until the end, so that ties go to the lowest index.
        kept = keep_best(scores, k)
        indices = np.take_along_axis(indices, kept, axis=1)
        scores = np.take_along_axis(scores, kept, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1)


def keep_best(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Columns ``(Q, min(k, n))`` of each row's largest scores, in column order; ties go to the first columns."""
    rows, columns = scores.shape
    if columns <= k:
        return np.broadcast_to(np.arange(columns), scores.shape)
    smallest = np.partition(scores, columns - k, axis=1)[:, columns - k, None]
    above = scores > smallest
    equal = scores == smallest
    free = k - above.sum(axis=1, keepdims=True)
    kept = above | (equal & (np.cumsum(equal, axis=1) <= free))
    return np.nonzero(kept)[1].reshape(rows, k)


_BATCH = 64
_BLOCK = 1024  # texts per step of the progress bar; they are sorted by length within a block


def encode(model: SentenceTransformer, texts: Sequence[str], side: Side | None = None) -> NDArray[np.float32]:
    """Encode texts, which must include their prefix, as unit vectors ``(N, d)`` float32; ``side`` decides their length.

    Raises:
        InputError: ``texts`` is no list of texts.
    """
    check_texts("texts", texts)
    blocks = []
    with counter(len(texts), desc="encode", unit="text") as progress:
        for start in range(0, len(texts), _BLOCK):
            block = list(texts[start : start + _BLOCK])
            vectors = model.encode(block, batch_size=_BATCH, show_progress_bar=False, task=side).astype(np.float64)
            blocks.append(_unit(vectors))
            progress.update(len(block))
    dimension = model.get_embedding_dimension() or 0
    return np.concatenate([np.empty((0, dimension), np.float32), *blocks])


def cut(vectors: NDArray[np.float32], dimension: int | None) -> NDArray[np.float32]:
    """Cut vectors ``(N, d)`` to their first ``dimension`` numbers, as unit vectors; None leaves them whole.

    Raises:
        InputError: ``dimension`` is below 1, or more than ``d``.
    """
    if dimension is not None:
        check_count("dimension", dimension)
        if dimension > vectors.shape[1]:
            raise InputError(f"dimension is {dimension}; vectors have {vectors.shape[1]}, so pass at most that")
    return vectors if dimension in (None, vectors.shape[1]) else _unit(vectors[:, :dimension].astype(np.float64))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def products(queries: NDArray[np.float32], documents: NDArray[np.float32]) -> NDArray[np.float32]:
    """Inner products of the rows of both ``(n, d)``, rounded as in ``search``."""
    found: NDArray[np.float64] = np.einsum("nd,nd->n", queries.astype(np.float64), documents.astype(np.float64))
    return found.astype(np.float32)


class DenseRetriever:
    """A ``batchwright.retrievers.Retriever`` that ranks documents by cosine similarity."""

    def __init__(self, folder: Path, info: ModelInfo) -> None:
        self.model: SentenceTransformer = load_model(folder, info.max_length)
        self.info = info

    def index(self, documents: Sequence[str], domains: Sequence[str] | None = None) -> "VectorIndex":
        """See ``batchwright.retrievers.Retriever``."""
        texts = self.info.prefixes.put_before(documents, "document", domains)
        return VectorIndex(self, encode(self.model, texts, "document"))

    def score(
        self, queries: Sequence[str], documents: Sequence[Sequence[str]], domain: str | None = None
    ) -> NDArray[np.float32]:
        """See ``batchwright.retrievers.Retriever``."""
        given, of = Given.of(queries, documents), None if domain is None else [domain]
        index = self.index(given.texts, of and of * len(given.texts))
        vectors = self.encode_queries(queries, of and of * len(queries))
        return products(vectors[given.owners], index.vectors[given.places])

    def encode_queries(self, queries: Sequence[str], domains: Sequence[str] | None = None) -> NDArray[np.float32]:
        """Encode queries as unit vectors ``(Q, d)``."""
        return encode(self.model, self.info.prefixes.put_before(queries, "query", domains), "query")


@dataclass(frozen=True)
class VectorIndex:
    """Documents as unit ``vectors`` ``(N, d)`` float32, searched exactly, where the model is.

    Queries are cut to ``dimension``; None leaves them whole.
    """

    retriever: DenseRetriever
    vectors: NDArray[np.float32]
    dimension: int | None = None

    def cut(self, dimension: int) -> Self:
        """Return an index of vectors cut to ``dimension``."""
        return replace(self, vectors=cut(self.vectors, dimension), dimension=dimension)

    def search(self, queries: Sequence[str], k: int, domains: Sequence[str] | None = None) -> Ranking:
        """See ``batchwright.retrievers.Index``."""
        vectors = cut(self.retriever.encode_queries(queries, domains), self.dimension)
        return search(vectors, self.vectors, k, self.retriever.model.device)
