"""Losses of a batch, from the scores of its queries and documents."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Outcome(NamedTuple):
    """The mean loss, and the share of queries whose own document outscores all that it is compared with.

    ``measures`` are further columns of the training curve, by name, the same in every step.
    """

    loss: Tensor
    accuracy: Tensor
    measures: Mapping[str, float] = {}


Objective = Callable[[Tensor, Tensor, Tensor], Outcome]
"""A loss of ``scores`` ``(B, B)``, whose diagonal are the positives; of ``masked`` ``(B, B)`` bool, the false negatives
(the diagonal is disregarded); and of ``negative_scores`` ``(B, K)``, each row's own hard negatives, -inf for none."""


def info_nce(scores: Tensor, masked: Tensor, negative_scores: Tensor) -> Outcome:
    """InfoNCE: cross-entropy of each row's positive among what is not masked (equation 4 of *Contextual Document
    Embeddings*, arXiv 2410.02525)."""
    scores = _compared(scores, masked, negative_scores)
    loss = functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
    return Outcome(loss, _accuracy(scores))


def hinge(scores: Tensor, masked: Tensor, negative_scores: Tensor) -> Outcome:
    """max(0, 1 - (s+ - s-)), the mean over a query's negatives, then over queries (*Less is More*, section 3); a query
    all of whose negatives are masked counts 0."""
    scores = _compared(scores, masked, negative_scores)
    positive = scores.diagonal()
    negative = torch.isfinite(scores) & ~torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
    losses = (1 - positive[:, None] + scores).clamp(min=0).where(negative, 0.0)
    return Outcome((losses.sum(dim=1) / negative.sum(dim=1).clamp(min=1)).mean(), _accuracy(scores))


def compare(
    queries: Tensor,
    documents: Tensor,
    masked: Tensor,
    negatives: Tensor,
    absent: Tensor,
    temperature: float,
    objective: Objective = info_nce,
) -> Outcome:
    """``objective`` of unit vectors' inner products, divided by ``temperature``.

    Args:
        queries: ``(B, d)``; ``documents``: ``(B, d)``, row ``i`` the positive of query ``i``.
        masked: ``(B, B)`` bool, document ``j`` is no negative of query ``i``; the diagonal is disregarded.
        negatives: ``(B, K, d)``, each query's own hard negatives; ``absent`` ``(B, K)`` bool where there is none.
    """
    scores = queries @ documents.T / temperature
    own = torch.einsum("bd,bkd->bk", queries, negatives) / temperature
    return objective(scores, masked, own.masked_fill(absent, -torch.inf))


def _compared(scores: Tensor, masked: Tensor, negative_scores: Tensor) -> Tensor:
    """``(B, B + K)``, -inf where there is nothing to compare with."""
    diagonal = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    return torch.cat([scores.masked_fill(masked & ~diagonal, -torch.inf), negative_scores], dim=1)


@torch.no_grad()
def _accuracy(scores: Tensor) -> Tensor:
    positive = scores.diagonal()
    hardest = scores.diagonal_scatter(torch.full_like(positive, -torch.inf)).amax(dim=1)
    return (positive > hardest).float().mean()
