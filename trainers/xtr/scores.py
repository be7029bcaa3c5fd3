"""Scores queries against documents by token similarities, without holding all similarities at once.

*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval* (arXiv 2304.01982), sections 2.1 and 3.1.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from trainers.common.passes import sent

ELEMENTS, ELEMENTS_ON_GPU = 2**21, 2**26
"""Similarities in memory at once: a GPU needs many to be busy."""
_LARGER = 8
"""How many times as much memory as a similarity, about, what the gradient needs for a retrieved token."""


class Tokens(NamedTuple):
    """Texts as unit token ``vectors`` ``(n, l, d)``; ``mask`` ``(n, l)`` is False for padding.

    The mask is on the host, so that nobody waits for a GPU to count.
    """

    vectors: Tensor
    mask: NDArray[np.bool_]


class Scores(NamedTuple):
    """Scores of B queries and N documents.

    ``values`` ``(B, N)`` are the scores, in float32 or float64. ``retrieving`` ``(B, N)`` int64 is the paper's Z: how
    many query tokens retrieved at least one token of the document. The score is the mean over these query tokens.
    """

    values: Tensor
    retrieving: Tensor


def score(queries: Tokens, documents: Tokens, k: int | None, elements: int | None = None) -> Scores:
    """Score B queries against N documents, differentiably.

    Each query token retrieves the ``k`` most similar of all document tokens. Tokens that tie with the last of these are
    retrieved too, so the result depends neither on the order of documents nor on chunks. A document's score is the mean
    of the largest retrieved similarity, over the query tokens that retrieved at least one of its tokens; it is 0 if
    none did. If ``k`` is None or not less than the number of document tokens, every token is retrieved and the score is
    ColBERT's mean of maxima.

    About ``elements`` similarities are in memory at once, by default ``ELEMENTS`` or ``ELEMENTS_ON_GPU``. For the
    gradient, two bytes are kept per query token and document. Shapes depend on the masks alone, so the host does not
    wait for a GPU.
    """
    elements = elements or (ELEMENTS_ON_GPU if queries.vectors.is_cuda else ELEMENTS)
    accurate = torch.promote_types(queries.vectors.dtype, torch.float32)
    if not documents.mask.shape[1]:  # pad: a maximum needs at least one element
        padded = np.zeros((len(documents.mask), 1), np.bool_)
        documents = Tokens(functional.pad(documents.vectors, (0, 0, 0, 1)), padded)
    owners, places = (sent(each, queries.vectors.device) for each in queries.mask.nonzero())
    values, retrieving = _Score.apply(
        queries.vectors[owners, places].to(accurate),
        owners,
        len(queries.vectors),
        documents.vectors.to(accurate),
        documents.mask,
        k,
        elements,
    )  # type: ignore[no-untyped-call]
    return Scores(values, retrieving)


class _Score(torch.autograd.Function):
    """``rows`` are query tokens, ``owners`` the queries that they belong to."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        owners: Tensor,
        size: int,
        documents: Tensor,
        mask: NDArray[np.bool_],
        k: int | None,
        elements: int,
    ) -> tuple[Tensor, Tensor]:
        pool = _Pool.of(documents, mask, k)
        sums = rows.new_zeros(size, len(documents))
        retrieving = owners.new_zeros(size, len(documents))
        kept = []
        for part in _blocks(len(rows), max(elements // max(mask.size, 1), 32)):
            similarities, places, retrieved = pool.retrieve(rows[part], elements)
            sums.index_add_(0, owners[part], similarities.masked_fill_(~retrieved, 0))
            retrieving.index_add_(0, owners[part], retrieved.long())
            if any(ctx.needs_input_grad):
                kept.append(torch.where(retrieved, places, ~places))
        places = torch.cat(kept) if kept else owners.new_empty(0, len(documents))
        ctx.save_for_backward(rows, owners, documents, places, retrieving)
        ctx.at_once = elements // _LARGER
        ctx.mark_non_differentiable(retrieving)
        return sums / retrieving.clamp(min=1), retrieving

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        rows, owners, documents, places, retrieving = ctx.saved_tensors
        each = gradient / retrieving.clamp(min=1)
        to_rows, to_documents = torch.zeros_like(rows), torch.zeros_like(documents)
        for part in _blocks(len(rows), max(ctx.at_once // max(len(documents), 1), 1)):
            to_rows[part] = _to_rows(documents, places[part], each[owners[part]])
        for part in _blocks(len(documents), max(ctx.at_once // max(len(rows), 1), 1)):
            to_documents[part] = _to_documents(rows, places[:, part].T, each.T[part][:, owners], documents.shape[1])
        return to_rows, None, None, to_documents, None, None, None


class _Pool(NamedTuple):
    """Documents' tokens, of which each query token retrieves the best ``k``; None: all.

    ``absent`` ``(N, l)`` is 0 for tokens and -inf for padding; the pool is ``full`` if there is no padding. ``present``
    ``(N,)`` says which documents have any token.
    """

    documents: Tensor
    absent: Tensor
    full: bool
    present: Tensor
    k: int | None

    @classmethod
    def of(cls, documents: Tensor, mask: NDArray[np.bool_], k: int | None) -> "_Pool":
        there = sent(mask, documents.device)
        absent = torch.zeros(mask.shape, dtype=documents.dtype, device=documents.device).masked_fill_(
            ~there, -torch.inf
        )
        return cls(
            documents, absent, bool(mask.all()), there.any(dim=1), k if k is not None and k < mask.sum() else None
        )

    def retrieve(self, rows: Tensor, elements: int) -> tuple[Tensor, Tensor, Tensor]:
        """For each row and document, ``(r, N)``: the largest similarity, its token, and whether it is retrieved."""
        count, length = self.absent.shape
        best = rows.new_empty(len(rows), 0)
        similarities = rows.new_empty(len(rows), count)
        places = torch.empty(similarities.shape, dtype=_whole_numbers(length), device=rows.device)
        for part in _blocks(count, max(elements // len(rows) // length, 1)):
            tokens = self.documents[part].flatten(0, 1).T
            products = rows @ tokens if self.full else torch.addmm(self.absent[part].flatten(), rows, tokens)
            similarities[:, part], places[:, part] = products.view(len(rows), -1, length).max(dim=2)
            if self.k is not None:
                best = products if not part.start else torch.cat([best, products], dim=1)
                best = best.topk(min(self.k, best.shape[1]), sorted=False).values
        retrieved = self.present.expand_as(similarities)
        if self.k is not None:
            retrieved = retrieved & (similarities >= best.amin(dim=1, keepdim=True))
        return similarities, places, retrieved


def _blocks(count: int, most: int) -> Iterator[slice]:
    return (slice(start, min(start + most, count)) for start in range(0, count, most))


def _whole_numbers(most: int) -> torch.dtype:
    return torch.int16 if most <= torch.iinfo(torch.int16).max else torch.int32


def _to_rows(documents: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """The gradient ``(r, d)`` of query tokens with ``places`` and ``weights`` ``(r, N)``."""
    numbers = _numbers(places, torch.arange(len(documents), device=places.device), documents.shape[1])
    flat = documents.flatten(0, 1)
    return functional.embedding_bag(numbers, flat, mode="sum", per_sample_weights=weights.masked_fill_(places < 0, 0))


def _to_documents(rows: Tensor, places: Tensor, weights: Tensor, length: int) -> Tensor:
    """The gradient ``(n, l, d)`` of documents with ``places`` and ``weights`` ``(n, R)``."""
    numbers = _numbers(places, torch.arange(len(places), device=places.device)[:, None], length)
    weights = weights.masked_fill_(places < 0, 0)
    numbers, order = numbers.flatten().sort(stable=True)
    tokens = torch.arange(len(places) * length, dtype=numbers.dtype, device=numbers.device)
    starts = torch.searchsorted(numbers, tokens)
    sums = functional.embedding_bag(
        order % len(rows), rows, starts, mode="sum", per_sample_weights=weights.flatten()[order]
    )
    return sums.view(len(places), length, -1)


def _numbers(places: Tensor, documents: Tensor, length: int) -> Tensor:
    """The numbers of tokens among those of all documents, int32."""
    return torch.maximum(places, ~places) + (documents * length).int()
