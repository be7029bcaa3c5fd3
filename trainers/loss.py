"""Masked InfoNCE: equation 4 of *Contextual Document Embeddings* (arXiv 2410.02525)."""

from collections.abc import Mapping
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


def info_nce(
    queries: Tensor, documents: Tensor, masked: Tensor, negatives: Tensor, absent: Tensor, temperature: float
) -> Outcome:
    """InfoNCE over unit vectors, queries against documents.

    Args:
        queries: ``(B, d)``; ``documents``: ``(B, d)``, row ``i`` the positive of query ``i``.
        masked: ``(B, B)`` bool, document ``j`` is no negative of query ``i``; the diagonal is disregarded.
        negatives: ``(B, K, d)``, each query's own hard negatives; ``absent`` ``(B, K)`` bool where there is none.
    """
    scores = queries @ documents.T / temperature
    own = torch.einsum("bd,bkd->bk", queries, negatives) / temperature
    return contrast(scores, masked, own.masked_fill(absent, -torch.inf))


def contrast(scores: Tensor, masked: Tensor, negative_scores: Tensor) -> Outcome:
    """Cross-entropy of each row's diagonal entry among the unmasked of ``scores`` ``(B, B)`` and its own
    ``negative_scores`` ``(B, K)``, of which -inf are no negatives."""
    diagonal = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    scores = torch.cat([scores.masked_fill(masked & ~diagonal, -torch.inf), negative_scores], dim=1)
    with torch.no_grad():
        positive = scores.diagonal()
        hardest = scores.diagonal_scatter(torch.full_like(positive, -torch.inf)).amax(dim=1)
        accuracy = (positive > hardest).float().mean()
    return Outcome(functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device)), accuracy)
