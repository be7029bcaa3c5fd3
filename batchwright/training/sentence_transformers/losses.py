"""Ranking losses of sentence-transformers that leave out false negatives."""

from collections.abc import Sequence

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from torch import Tensor
from torch.nn import functional

from batchwright.training.losses import compare
from batchwright.training.sentence_transformers.dataset import decode

SCALE = 20.0
"""Factor of the cosines, 1 / temperature."""


class MaskedMultipleNegativesRankingLoss(MultipleNegativesRankingLoss):
    """MultipleNegativesRankingLoss without the negatives that the shards mask; see ``masked_loss``.

    For batches of ``ShardBatchSampler`` from a ``shard_dataset``; others are an InputError.
    """

    def __init__(self, model: SentenceTransformer, scale: float = SCALE) -> None:
        super().__init__(model, scale=scale)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the loss of a batch, from the embeddings ``(B, d)`` of each column."""
        return masked_loss(embeddings, labels, self.scale)


class CachedMaskedMultipleNegativesRankingLoss(CachedMultipleNegativesRankingLoss):
    """The same loss with a gradient cache: only ``mini_batch_size`` texts go through the model at once.

    Static models, which need none, cannot be used with it.
    """

    def __init__(self, model: SentenceTransformer, scale: float = SCALE, mini_batch_size: int = 32) -> None:
        super().__init__(model, scale=scale, mini_batch_size=mini_batch_size)

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """Return the loss of a batch, from the embeddings of each column's mini-batches."""
        loss = masked_loss([torch.cat(parts) for parts in reps], labels, self.scale)
        if with_backward:
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach() if with_backward else loss


def masked_loss(embeddings: Sequence[Tensor], labels: Tensor | None, scale: float) -> Tensor:
    """Return the mean cross-entropy of each query's document among the unmasked ones and the row's hard negatives.

    This is the loss of our own biencoder. Unlike in MultipleNegativesRankingLoss, a hard negative is compared only with
    the query of its own row: nobody has checked that it is no positive of the others.

    Args:
        embeddings: ``(B, d)`` each: queries, documents, and any number of hard negatives.
        labels: The column ``label`` of ``shard_dataset``.
        scale: Factor of the cosines.

    Raises:
        InputError: the rows are not one whole training batch in its order.
    """
    masked, counts, stands_for = decode(labels)
    queries, documents, *rest = (functional.normalize(each, dim=-1) for each in embeddings)
    negatives = torch.stack(rest, dim=1) if rest else queries.new_empty(len(queries), 0, queries.shape[1])
    absent = torch.arange(len(rest), device=counts.device) >= counts[:, None]
    return compare(queries, documents, masked, negatives, absent, 1 / scale, stands_for=stands_for).loss
