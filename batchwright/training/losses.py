"""Losses of a batch, computed from the scores of its queries and documents."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Outcome(NamedTuple):
    """The mean loss, and the accuracy: the share of queries whose positive outscores all their negatives.

    ``measures`` are additional columns of the training curve, by name; every step must have the same ones.
    """

    loss: Tensor
    accuracy: Tensor
    measures: Mapping[str, Tensor] = {}


Objective = Callable[[Tensor, Tensor, Tensor, Tensor | None], Outcome]
"""A loss as a function of four tensors.

``scores`` ``(B, B)`` has the positives on its diagonal. ``masked`` ``(B, B)`` bool is True for false negatives; its
diagonal is ignored. ``negative_scores`` ``(B, K)`` are the scores of each row's own hard negatives, -inf if absent.
``stands_for`` ``(B, B)`` is how many documents document j stands for as a negative of query i; None: itself alone."""


def info_nce(scores: Tensor, masked: Tensor, negative_scores: Tensor, stands_for: Tensor | None = None) -> Outcome:
    """InfoNCE: cross-entropy of each row's positive among the unmasked documents and the row's own hard negatives.

    *Contextual Document Embeddings* (arXiv 2410.02525), equation 4. With ``stands_for`` it estimates the cross-entropy
    over a whole collection from the few documents in the batch: the logarithm is added to their scores (sampled
    softmax, Bengio and Senecal, 2008).
    """
    compared = _compared(scores, masked, negative_scores)
    counted = compared if stands_for is None else _compared(scores + stands_for.log(), masked, negative_scores)
    loss = functional.cross_entropy(counted, torch.arange(len(scores), device=scores.device))
    return Outcome(loss, _accuracy(compared))


def hinge(
    scores: Tensor,
    masked: Tensor,
    negative_scores: Tensor,
    stands_for: Tensor | None = None,  # noqa: ARG001
    *,
    margin: float,
) -> Outcome:
    """Hinge loss: max(0, margin - (s+ - s-)), averaged over each query's negatives, then over queries.

    *Less is More* (arXiv 2102.09206), section 3. ``margin`` is in units of the scores: of cosines, if their temperature
    is 1. A query whose negatives are all masked counts as 0. Every negative counts once, whatever it stands for.
    """
    scores = _compared(scores, masked, negative_scores)
    positive = scores.diagonal()
    negative = torch.isfinite(scores) & ~torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
    losses = (margin - positive[:, None] + scores).clamp(min=0).where(negative, 0.0)
    return Outcome((losses.sum(dim=1) / negative.sum(dim=1).clamp(min=1)).mean(), _accuracy(scores))


def compare(
    queries: Tensor,
    documents: Tensor,
    masked: Tensor,
    negatives: Tensor,
    absent: Tensor,
    temperature: float,
    objective: Objective = info_nce,
    stands_for: Tensor | None = None,
) -> Outcome:
    """Compute ``objective`` on the inner products of unit vectors, divided by ``temperature``.

    Args:
        queries: ``(B, d)``.
        documents: ``(B, d)``; row ``i`` is the positive of query ``i``.
        masked: ``(B, B)`` bool, True if document ``j`` is not a negative of query ``i``; the diagonal is ignored.
        negatives: ``(B, K, d)``, each query's own hard negatives.
        absent: ``(B, K)`` bool, True where a query has no hard negative.
        temperature: Divides all inner products.
        objective: The loss.
        stands_for: ``(B, B)``, how many documents document ``j`` stands for as a negative of query ``i``, 1 on the
            diagonal; None: each for itself.
    """
    scores = queries @ documents.T / temperature
    own = torch.einsum("bd,bkd->bk", queries, negatives) / temperature
    return objective(scores, masked, own.masked_fill(absent, -torch.inf), stands_for)


def _compared(scores: Tensor, masked: Tensor, negative_scores: Tensor) -> Tensor:
    """Scores ``(B, B + K)`` of documents and hard negatives, -inf for those that are masked or absent."""
    diagonal = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    return torch.cat([scores.masked_fill(masked & ~diagonal, -torch.inf), negative_scores], dim=1)


@torch.no_grad()
def _accuracy(scores: Tensor) -> Tensor:
    positive = scores.diagonal()
    hardest = scores.diagonal_scatter(torch.full_like(positive, -torch.inf)).amax(dim=1)
    return (positive > hardest).float().mean()
