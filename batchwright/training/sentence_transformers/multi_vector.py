"""The masked loss for models with a vector for each token, such as ColBERT's: documents are scored by MaxSim."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.multi_vector_encoder.losses import (
    CachedMultiVectorMultipleNegativesRankingLoss,
    MultiVectorMultipleNegativesRankingLoss,
)
from sentence_transformers.util import cat_padded_token_embeddings
from sentence_transformers.util.distributed import all_gather_padded, get_world_size
from sentence_transformers.util.similarity import maxsim, maxsim_pairwise
from torch import Tensor
from torch.nn import functional

from batchwright.core.errors import InputError
from batchwright.formats.loss_options import LossOptions
from batchwright.training.losses import objective_of
from batchwright.training.sentence_transformers.losses import SCALE, WHERE, read_marks, read_options


class Tokens(NamedTuple):
    """A column's texts as token ``vectors`` ``(B, l, d)``; ``mask`` ``(B, l)`` bool is False for those to leave out."""

    vectors: Tensor
    mask: Tensor


class MaskedMultiVectorMultipleNegativesRankingLoss(MultiVectorMultipleNegativesRankingLoss):
    """MultiVectorMultipleNegativesRankingLoss without what the shards mask; see ``masked_token_loss``.

    ``options`` as in ``MaskedMultipleNegativesRankingLoss``, but for those that need a vector for each text.
    """

    def __init__(self, model: MultiVectorEncoder, scale: float = SCALE, **options: Any) -> None:
        super().__init__(model, scale=scale)
        self.options = _token_options(options)

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch."""
        columns = []
        for place, features in enumerate(sentence_features):
            output = self.model(dict(features), task=features.get("task", "document" if place else "query"))
            columns.append(Tokens(output["token_embeddings"], output["attention_mask"].bool()))
        return masked_token_loss(columns, labels, self.scale, self.options)

    def get_config_dict(self) -> dict[str, Any]:
        """What the model's card says of the loss."""
        return {"scale": self.scale, **self.options.model_dump()}


class CachedMaskedMultiVectorMultipleNegativesRankingLoss(CachedMultiVectorMultipleNegativesRankingLoss):
    """The same loss with a gradient cache: only ``mini_batch_size`` texts go through the model at once."""

    def __init__(
        self, model: MultiVectorEncoder, scale: float = SCALE, mini_batch_size: int = 32, **options: Any
    ) -> None:
        super().__init__(model, scale=scale, mini_batch_size=mini_batch_size)
        self.options = _token_options(options)
        self._labels: Tensor | None = None

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch."""
        self._labels = labels  # which the base class does not hand on to calculate_loss
        loss: Tensor = super().forward(sentence_features, labels)
        return loss

    def calculate_loss(
        self, reps: list[list[Tensor]], masks_chunks: list[list[Tensor]], *, with_backward: bool = False
    ) -> Tensor:
        """Return the loss of a batch, from the token vectors of each column's mini-batches."""
        parts = zip(reps, masks_chunks, strict=True)
        columns = [Tokens(*cat_padded_token_embeddings(*each)) for each in parts]
        loss = masked_token_loss(columns, self._labels, self.scale, self.options)
        if with_backward:
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach() if with_backward else loss

    def get_config_dict(self) -> dict[str, Any]:
        """What the model's card says of the loss."""
        return {"scale": self.scale, "mini_batch_size": self.mini_batch_size, **self.options.model_dump()}


def masked_token_loss(
    columns: Sequence[Tokens], labels: Tensor | None, scale: float, options: LossOptions | None = None
) -> Tensor:
    """Return the mean cross-entropy of each query's document among the unmasked ones and the row's hard negatives.

    A document's score is the mean over the query's tokens of the largest cosine with one of its tokens, times
    ``scale``. This is the loss of our own XTR trainer with ``score: colbert``. Several processes as in ``masked_loss``.

    Args:
        columns: Queries, documents, and any number of hard negatives.
        labels: The column ``label`` of ``shard_dataset``.
        scale: Factor of the scores, 1 / temperature.
        options: Options of the loss; None: the default ones.

    Raises:
        InputError: the rows are not one whole training batch in its order, or have not what the options ask for.
    """
    chosen = options or LossOptions()
    marks = read_marks(labels, chosen, len(columns) - 2)
    if get_world_size() > 1:
        columns = [Tokens(*all_gather_padded(each.vectors, each.mask, with_grad=True)) for each in columns]
    queries, documents, *rest = (each._replace(vectors=functional.normalize(each.vectors, dim=-1)) for each in columns)
    score, score_own = (partial(each, a_mask=queries.mask, length_normalize=True) for each in (maxsim, maxsim_pairwise))
    scores = score(queries.vectors, documents.vectors, b_mask=documents.mask) * scale
    own = [score_own(queries.vectors, each.vectors, b_mask=each.mask) * scale for each in rest]
    negative_scores = torch.stack(own, dim=1) if own else scores.new_empty(len(scores), 0)
    negative_scores = negative_scores.masked_fill(marks.absent(len(rest)), -torch.inf)
    objective = marks.weighted(objective_of(chosen))
    return objective(scores, marks.masked, negative_scores, marks.stands_for, None, marks.taught).loss


def _token_options(given: dict[str, Any]) -> LossOptions:
    options = read_options(given)
    for option in ("directions", "hardness_strength"):
        if getattr(options, option) != LossOptions.model_fields[option].default:
            raise InputError(f"{WHERE}: {option} needs a vector for each text, not one for each token; remove it")
    return options
