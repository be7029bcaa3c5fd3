"""Loss and gradient of a batch, from its token vectors."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Outcome, info_nce
from trainers.common.contrastive import present_negatives, spread, stands_for, take
from trainers.common.distributed import gather_rows, pad_rows
from trainers.common.gradient_cache import CachedForward, beside
from trainers.common.passes.precision import float32_products, sent
from trainers.xtr.scores import Scores, Tokens, score


def contrast_tokens(
    queries: CachedForward, documents: CachedForward, batch: TrainBatch, k: int | None, temperature: float
) -> Outcome:
    """Compute masked cross-entropy over the whole batch, and backpropagate its gradient at this rank's rows.

    ``documents`` holds the documents of the rank's rows, followed by their hard negatives, as ``(n, l, d)`` with zero
    vectors in place of padding. Query tokens retrieve from all documents and hard negatives of the batch, on all ranks,
    as they would from an index. This pool includes masked documents and other rows' hard negatives: they are left out
    of the loss, not out of the pool.
    """
    device = queries.output.device
    present = present_negatives(batch)
    own_present = present[batch.rows]
    positives, negatives = documents.output.tensor_split([len(batch.documents)])
    own = (queries.output, positives, spread(negatives, own_present))
    leaves = [_gather(each, batch.size).requires_grad_() for each in own]

    masked = sent(batch.masked, device)

    def compute() -> tuple[Outcome, list[Tensor]]:
        pool = torch.cat([leaves[1], take(leaves[2], present)])
        scores = score(_tokens(leaves[0]), _tokens(pool), k)
        found = info_nce(*_compared(scores.values / temperature, masked, present), stands_for(batch, device))
        gradients = [each[batch.rows] for each in torch.autograd.grad(found.loss, leaves)]
        return Outcome(found.loss.detach(), found.accuracy, _measures(scores)), gradients

    with float32_products(tf32=False):
        outcome, gradients = beside([queries, documents], compute)
    queries.backward(gradients[0][:, : queries.output.shape[1]])
    length = documents.output.shape[1]
    documents.backward(torch.cat([gradients[1][:, :length], take(gradients[2], own_present)[:, :length]]))
    return outcome


def _compared(scores: Tensor, masked: Tensor, present: NDArray[np.bool_]) -> tuple[Tensor, Tensor, Tensor]:
    """Arguments of the loss: document scores ``(B, B)``, their mask, and scores of own hard negatives ``(B, K)``."""
    size = len(scores)
    places = np.flatnonzero(present)
    rows = sent(places // max(present.shape[1], 1), scores.device)
    columns = torch.arange(size, size + len(places), device=scores.device)
    own = scores.new_full((present.size,), -torch.inf)
    own[sent(places, scores.device)] = scores[rows, columns]
    return scores[:, :size], masked, own.view(present.shape)


def _measures(scores: Scores) -> dict[str, Tensor]:
    """How many query tokens retrieve a token of the positive.

    ``z`` is the mean number over queries; ``missed_positives`` is the share of queries with none.
    """
    z = scores.retrieving.diagonal()
    return {"z": z.float().mean(), "missed_positives": (z == 0).float().mean()}


def _gather(own: Tensor, size: int) -> Tensor:
    """Gather the rows of all ranks, ``(size, ..., l, d)``, padded to the longest."""
    if own.ndim == 3:
        return gather_rows(pad_rows(own), size)
    padded = pad_rows(own.flatten(0, 1))
    return gather_rows(padded.view(*own.shape[:2], *padded.shape[1:]), size)


def _tokens(vectors: Tensor) -> Tokens:
    return Tokens(vectors, (vectors.detach() != 0).any(dim=2))
