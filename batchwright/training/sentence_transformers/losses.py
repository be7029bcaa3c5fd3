"""Ranking losses of sentence-transformers that leave out false negatives."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.util.distributed import all_gather, all_gather_with_grad, get_world_size
from torch import Tensor
from torch.nn import functional

from batchwright.core.errors import InputError
from batchwright.formats.loss_options import LossOptions
from batchwright.training.losses import compare, objective_of
from batchwright.training.sentence_transformers.labels import Marks, decode

SCALE = 20.0
"""Factor of the cosines, 1 / temperature."""
WHERE = "the masked loss"


class MaskedMultipleNegativesRankingLoss(MultipleNegativesRankingLoss):
    """MultipleNegativesRankingLoss without the negatives that the shards mask; see ``masked_loss``.

    For batches of ``ShardBatchSampler`` from a ``shard_dataset``; others are an InputError. ``options`` are those of
    ``LossOptions``, such as ``hardness_strength=5`` or ``distill={"loss": "margin_mse"}``.
    """

    def __init__(self, model: SentenceTransformer, scale: float = SCALE, **options: Any) -> None:
        super().__init__(model, scale=scale)
        self.options = read_options(options)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the loss of a batch, from the embeddings ``(B, d)`` of each column."""
        return masked_loss(embeddings, labels, self.scale, self.options)

    def get_config_dict(self) -> dict[str, Any]:
        """What the model's card says of the loss."""
        return {"scale": self.scale, **self.options.model_dump()}


class CachedMaskedMultipleNegativesRankingLoss(CachedMultipleNegativesRankingLoss):
    """The same loss with a gradient cache: only ``mini_batch_size`` texts go through the model at once.

    Static models, which need none, cannot be used with it.
    """

    def __init__(
        self, model: SentenceTransformer, scale: float = SCALE, mini_batch_size: int = 32, **options: Any
    ) -> None:
        super().__init__(model, scale=scale, mini_batch_size=mini_batch_size)
        self.options = read_options(options)

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """Return the loss of a batch, from the embeddings of each column's mini-batches."""
        loss = masked_loss([torch.cat(parts) for parts in reps], labels, self.scale, self.options)
        if with_backward:
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach() if with_backward else loss

    def get_config_dict(self) -> dict[str, Any]:
        """What the model's card says of the loss."""
        return {"scale": self.scale, "mini_batch_size": self.mini_batch_size, **self.options.model_dump()}


def masked_loss(
    embeddings: Sequence[Tensor], labels: Tensor | None, scale: float, options: LossOptions | None = None
) -> Tensor:
    """Return the mean cross-entropy of each query's document among the unmasked ones and the row's hard negatives.

    This is the loss of our own biencoder, with the same ``options``. Unlike in MultipleNegativesRankingLoss, a hard
    negative is compared only with the query of its own row: nobody has checked that it is no positive of the others.

    If each of several processes has a part of the batch, all compute the loss of the whole one. Its gradient flows back
    to each process's own texts, as many times as there are processes, of which DistributedDataParallel takes the mean.

    Args:
        embeddings: ``(B, d)`` each: queries, documents, and any number of hard negatives.
        labels: The column ``label`` of ``shard_dataset``.
        scale: Factor of the cosines.
        options: Options of the loss; None: the default ones.

    Raises:
        InputError: the rows are not one whole training batch in its order, or have not what the options ask for.
    """
    chosen = options or LossOptions()
    marks = read_marks(labels, chosen, len(embeddings) - 2)
    if get_world_size() > 1:
        embeddings = [all_gather_with_grad(each) for each in embeddings]
    queries, documents, *rest = (functional.normalize(each, dim=-1) for each in embeddings)
    negatives = torch.stack(rest, dim=1) if rest else queries.new_empty(len(queries), 0, queries.shape[1])
    return compare(
        queries,
        documents,
        marks.masked,
        negatives,
        marks.absent(len(rest)),
        1 / scale,
        marks.weighted(objective_of(chosen)),
        stands_for=marks.stands_for,
        taught=marks.taught,
    ).loss


def read_marks(labels: Tensor | None, options: LossOptions, hard_negatives: int) -> Marks:
    """Read the labels of a batch, of which each process may have a part, as the ``options`` ask for.

    Raises:
        InputError: as ``masked_loss``.
    """
    if labels is None or labels.dtype != torch.uint8:
        raise InputError("the masked loss needs the masks; train on a dataset that shard_dataset made, without scores")
    marks = decode(all_gather(labels) if get_world_size() > 1 else labels)
    options.check(WHERE, hard_negatives, "batch" if marks.stands_for is None else "domain")
    if options.distill and marks.taught is None:
        raise InputError(f"{WHERE}: distill needs shards with a teacher's scores, which the stage 'teach' makes")
    masked = marks.masked if options.in_batch else torch.ones_like(marks.masked)
    return marks._replace(masked=masked, taught=marks.taught if options.distill else None)


def read_options(given: Mapping[str, Any]) -> LossOptions:
    """Check options as far as the dataset does not matter.

    Raises:
        InputError: they do not go together.
        ValidationError: there is no such option or value.
    """
    options = LossOptions(**given)
    options.check(WHERE, 1, "batch")
    return options
