"""Loss and gradient of a batch, for all variants with one vector per text."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Objective, Outcome, compare, info_nce
from trainers.common.distributed import gather_rows
from trainers.common.gradient_cache import CachedForward, beside
from trainers.common.passes.precision import float32_products, sent


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
    device = queries.output.device
    present = present_negatives(batch)
    own_present = present[batch.rows]
    positives, negatives = documents.output.tensor_split([len(batch.documents)])
    own = (queries.output, positives, spread(negatives, own_present))
    leaves = [gather_rows(each, batch.size).requires_grad_() for each in own]

    masked, absent, weights = sent(batch.masked, device), sent(~present, device), stands_for(batch, device)

    def compute() -> tuple[Outcome, list[Tensor]]:
        found = compare(leaves[0], leaves[1], masked, leaves[2], absent, temperature, objective, weights)
        return found, [each[batch.rows] for each in torch.autograd.grad(found.loss, leaves)]

    with float32_products(tf32=False):
        outcome, gradients = beside([queries, documents], compute)
    queries.backward(gradients[0])
    documents.backward(torch.cat([gradients[1], take(gradients[2], own_present)]))
    return Outcome(outcome.loss.detach(), outcome.accuracy)


def stands_for(batch: TrainBatch, device: torch.device) -> Tensor | None:
    """How many documents each document stands for, as a tensor."""
    return None if batch.stands_for is None else sent(batch.stands_for, device)


def present_negatives(batch: TrainBatch) -> NDArray[np.bool_]:
    """Which places of a ``(B, K)`` table hold a hard negative, as bool; K is the largest count of any row.

    A row with n hard negatives fills its first n places.
    """
    present: NDArray[np.bool_] = np.arange(batch.negative_counts.max()) < batch.negative_counts[:, None]
    return present


def spread(negatives: Tensor, present: NDArray[np.bool_]) -> Tensor:
    """Put negatives ``(n, ...)`` into the places marked in ``present`` ``(b, K)``; all others are zero."""
    places = negatives.new_zeros(present.size, *negatives.shape[1:])
    places[sent(np.flatnonzero(present), negatives.device)] = negatives
    return places.view(*present.shape, *negatives.shape[1:])


def take(table: Tensor, present: NDArray[np.bool_]) -> Tensor:
    """The entries ``(n, ...)`` of ``table`` ``(b, K, ...)`` that are marked in ``present`` ``(b, K)``."""
    return table.flatten(0, 1)[sent(np.flatnonzero(present), table.device)]
