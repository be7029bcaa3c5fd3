"""Scores queries against documents by token similarities, without holding all similarities at once.

*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval* (arXiv 2304.01982), sections 2.1 and 3.1.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

ELEMENTS, ELEMENTS_ON_GPU = 2**21, 2**26
"""Similarities in memory at once: a GPU needs many to be busy."""


class Tokens(NamedTuple):
    """Texts as unit token ``vectors`` ``(n, l, d)``; ``mask`` ``(n, l)`` bool is False for padding."""

    vectors: Tensor
    mask: Tensor


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
    gradient, one number is kept per query token and document that it retrieved: at most B l min(k, N), ties not
    counted.
    """
    elements = elements or (ELEMENTS_ON_GPU if queries.vectors.is_cuda else ELEMENTS)
    accurate = torch.promote_types(queries.vectors.dtype, torch.float32)
    if not documents.mask.shape[1]:  # pad: a maximum needs at least one element
        documents = Tokens(functional.pad(documents.vectors, (0, 0, 0, 1)), functional.pad(documents.mask, (0, 1)))
    owners, _ = queries.mask.nonzero(as_tuple=True)
    rows = queries.vectors[queries.mask].to(accurate)
    values, retrieving = _Score.apply(
        rows, owners, len(queries.vectors), documents.vectors.to(accurate), documents.mask, k, elements
    )  # type: ignore[no-untyped-call]
    return Scores(values, retrieving)


class _Score(torch.autograd.Function):
    """``rows`` are query tokens; a document token's place is its index in ``documents`` flattened to ``(N * l, d)``."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, owners: Tensor, size: int, documents: Tensor, mask: Tensor, k: int | None, elements: int
    ) -> tuple[Tensor, Tensor]:
        sums = rows.new_zeros(size, len(documents))
        retrieving = owners.new_zeros(size, len(documents))
        retrieved_by_row, retrieved_places = [], []
        at_once = max(elements // max(mask.numel(), 1), 32)
        for part, part_owners in zip(torch.split(rows, at_once), torch.split(owners, at_once), strict=True):
            similarities, places, retrieved = _retrieve(part, documents, mask, k, elements // max(len(part), 1))
            sums.index_add_(0, part_owners, similarities.masked_fill_(~retrieved, 0))
            retrieving.index_add_(0, part_owners, retrieved.long())
            if any(ctx.needs_input_grad):
                retrieved_by_row.append(retrieved.sum(dim=1))
                retrieved_places.append(places[retrieved])
        counts = torch.cat([owners.new_empty(0), *retrieved_by_row])
        places = torch.cat([owners.new_empty(0, dtype=torch.int32), *retrieved_places])
        ctx.save_for_backward(rows, owners, documents, counts, places, retrieving)
        ctx.mark_non_differentiable(retrieving)
        return sums / retrieving.clamp(min=1), retrieving

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        rows, owners, documents, counts, places, retrieving = ctx.saved_tensors
        row = torch.arange(len(rows), dtype=torch.int32, device=rows.device).repeat_interleave(counts)
        each = (gradient / retrieving.clamp(min=1))[owners[row], places // documents.shape[1]]
        flat = documents.flatten(0, 1)
        to_rows = _weighted_sums(places, counts, flat, each)
        order = torch.argsort(places, stable=True)
        to_documents = _weighted_sums(row[order], torch.bincount(places, minlength=len(flat)), rows, each[order])
        return to_rows, None, None, to_documents.view_as(documents), None, None, None


def _retrieve(
    rows: Tensor, documents: Tensor, mask: Tensor, k: int | None, columns: int
) -> tuple[Tensor, Tensor, Tensor]:
    """For each row and document, ``(r, N)``: the largest similarity, its token's place, and whether it is retrieved."""
    length = documents.shape[1]
    none = torch.zeros(mask.shape, dtype=rows.dtype, device=rows.device).masked_fill_(~mask, -torch.inf)
    limited = k is not None and k < int(mask.sum())
    best = rows.new_empty(len(rows), 0)
    similarities = rows.new_empty(len(rows), len(documents))
    places = torch.empty(similarities.shape, dtype=torch.int32, device=rows.device)
    at_once = max(columns // length, 1)
    for start in range(0, len(documents), at_once):
        part = slice(start, start + at_once)
        products = torch.addmm(none[part].flatten(), rows, documents[part].flatten(0, 1).T)
        similarities[:, part], offsets = products.view(len(rows), len(none[part]), length).max(dim=2)
        places[:, part] = offsets
        if limited:
            best = products if not start else torch.cat([best, products], dim=1)
            best = best.topk(min(k or 0, best.shape[1]), sorted=False).values
    places += torch.arange(len(documents), dtype=torch.int32, device=rows.device) * length
    retrieved = mask.any(dim=1).expand_as(similarities)
    return similarities, places, retrieved & (similarities >= best.amin(dim=1, keepdim=True)) if limited else retrieved


def _weighted_sums(places: Tensor, counts: Tensor, vectors: Tensor, weights: Tensor) -> Tensor:
    """Sum ``weights`` times ``vectors[places]`` over consecutive groups of ``counts`` sizes, ``(len(counts), d)``."""
    starts = (counts.cumsum(0) - counts).to(places.dtype)
    return functional.embedding_bag(places, vectors, starts, mode="sum", per_sample_weights=weights)
