"""From embeddings of a batch to the gradient of its loss, for all variants with one vector a text."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainers.common.batches import TrainBatch
from trainers.common.distributed import gather_rows
from trainers.common.gradient_cache import CachedForward
from trainers.common.losses import Objective, Outcome, compare, info_nce


def contrast_batch(
    queries: CachedForward[Any],
    documents: CachedForward[Any],
    batch: TrainBatch,
    temperature: float,
    objective: Objective = info_nce,
) -> Outcome:
    """``objective`` of the whole batch, and its gradient at this rank's rows sent back into the encoder.

    ``documents`` are the batch's own documents and, after them, its hard negatives.
    """
    present = present_negatives(batch, queries.output.device)
    own_present = present[batch.rows]
    positives, negatives = documents.output.tensor_split([len(batch.documents)])
    own = (queries.output, positives, spread(negatives, own_present))
    leaves = [gather_rows(each, batch.size).requires_grad_() for each in own]

    masked = torch.from_numpy(batch.masked).to(present.device)
    outcome = compare(leaves[0], leaves[1], masked, leaves[2], ~present, temperature, objective)
    gradients = [each[batch.rows] for each in torch.autograd.grad(outcome.loss, leaves)]
    queries.backward(gradients[0])
    documents.backward(torch.cat([gradients[1], gradients[2][own_present]]))
    return Outcome(outcome.loss.detach(), outcome.accuracy)


def present_negatives(batch: TrainBatch, device: torch.device) -> Tensor:
    """Which of K places for hard negatives each row fills, ``(B, K)`` bool, the first ones."""
    present = np.arange(batch.negative_counts.max()) < batch.negative_counts[:, None]
    return torch.from_numpy(present).to(device)


def spread(negatives: Tensor, present: Tensor) -> Tensor:
    """Negatives ``(n, ...)`` on their places ``(b, K, ...)``; the others are zero."""
    places = negatives.new_zeros(*present.shape, *negatives.shape[1:])
    places[present] = negatives
    return places
