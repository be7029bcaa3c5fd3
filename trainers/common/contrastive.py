"""Loss and gradient of a batch, for all variants with one vector per text."""

import numpy as np
import torch
from torch import Tensor

from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Objective, Outcome, compare, info_nce
from trainers.common.distributed import gather_rows
from trainers.common.gradient_cache import CachedForward
from trainers.common.passes.precision import float32_products


def contrast_batch(
    queries: CachedForward,
    documents: CachedForward,
    batch: TrainBatch,
    temperature: float,
    objective: Objective = info_nce,
) -> Outcome:
    """Compute ``objective`` over the whole batch, and backpropagate its gradient at this rank's rows.

    ``documents`` holds the documents of the rank's rows, followed by their hard negatives.
    """
    present = present_negatives(batch, queries.output.device)
    own_present = present[batch.rows]
    positives, negatives = documents.output.tensor_split([len(batch.documents)])
    own = (queries.output, positives, spread(negatives, own_present))
    leaves = [gather_rows(each, batch.size).requires_grad_() for each in own]

    masked = torch.from_numpy(batch.masked).to(present.device)
    weights = stands_for(batch, masked.device)
    with float32_products(tf32=False):
        outcome = compare(leaves[0], leaves[1], masked, leaves[2], ~present, temperature, objective, weights)
        gradients = [each[batch.rows] for each in torch.autograd.grad(outcome.loss, leaves)]
    queries.backward(gradients[0])
    documents.backward(torch.cat([gradients[1], gradients[2][own_present]]))
    return Outcome(outcome.loss.detach(), outcome.accuracy)


def stands_for(batch: TrainBatch, device: torch.device) -> Tensor | None:
    """How many documents each document stands for, as a tensor."""
    return None if batch.stands_for is None else torch.from_numpy(batch.stands_for).to(device)


def present_negatives(batch: TrainBatch, device: torch.device) -> Tensor:
    """Which places of a ``(B, K)`` table hold a hard negative, as bool; K is the largest count of any row.

    A row with n hard negatives fills its first n places.
    """
    present = np.arange(batch.negative_counts.max()) < batch.negative_counts[:, None]
    return torch.from_numpy(present).to(device)


def spread(negatives: Tensor, present: Tensor) -> Tensor:
    """Put negatives ``(n, ...)`` into the places marked in ``present`` ``(b, K)``; all others are zero."""
    places = negatives.new_zeros(*present.shape, *negatives.shape[1:])
    places[present] = negatives
    return places
