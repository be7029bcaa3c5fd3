"""Trains one encoder for queries and documents, with one vector per text."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional

from batchwright.formats.models import SIDES
from batchwright.retrievers.common.model_folder import load_model, save_model
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Objective, Outcome, compare, objective_of
from trainers.common.dimensions import check_dimensions
from trainers.common.distributed import gather_rows
from trainers.common.gradient_cache import BatchTexts, CachedForward, Passes
from trainers.common.job import TrainJob
from trainers.common.passes import float32_products, placed, sent
from trainers.common.tokenise import Tokenise


class SentenceLearner:
    """A ``trainers.common.run.Learner`` for a SentenceTransformer."""

    fresh: Sequence[nn.Parameter] = ()

    def __init__(self, job: TrainJob, objective: Objective | None = None, temperature: float | None = None) -> None:
        """Load the start model; ``temperature`` divides the cosines. Loss and temperature are the job's by default."""
        self.model: SentenceTransformer = load_model(job.start_model, job.info.max_length, job.loading_device)
        check_dimensions(job, self.model)
        self._job, self._passes = job, Passes(job, self.model)
        self._tokenise = Tokenise(self.model)
        self._objective = objective or objective_of(job.common)
        self._temperature = temperature or job.params.temperature

    def prepare(self, batch: TrainBatch) -> BatchTexts:
        """See ``Learner``."""
        return self._passes.prepare(batch, *(partial(self._tokenise, side=side) for side in SIDES))

    def backward(self, prepared: BatchTexts) -> Outcome:
        """See ``Learner``; uses a gradient cache over queries, documents and hard negatives."""
        batch, *sides = prepared
        with self._passes.batch():
            queries, documents = (self._passes.forward(batch, partial(embed, self.model), side) for side in sides)
            dimensions = self._job.common.dimension_weights
            return contrast_batch(queries, documents, batch, self._temperature, self._objective, dimensions)

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder."""
        save_model(self.model, folder, self._job.info.prefixes.default)


def embed(model: SentenceTransformer, features: dict[str, Any]) -> Tensor:
    """Embed model inputs as unit vectors ``(n, d)``, in float32 whatever the model computes in, with gradient."""
    vectors: Tensor = model(placed(features, model.device))["sentence_embedding"]
    return functional.normalize(vectors.float(), dim=-1)


def contrast_batch(
    queries: CachedForward,
    documents: CachedForward,
    batch: TrainBatch,
    temperature: float,
    objective: Objective,
    dimensions: Mapping[int, float] | None,
) -> Outcome:
    """Compute ``objective`` over the whole batch, and backpropagate its gradient at this rank's rows.

    ``documents`` holds the documents of the rank's rows, followed by their hard negatives; ``dimensions`` as in
    ``compare``.
    """
    device = queries.output.device
    present = present_negatives(batch)
    local_present = present[batch.rows]
    positives, negatives = documents.output.tensor_split([len(batch.documents)])
    local = (queries.output, positives, spread(negatives, local_present))
    leaves = [gather_rows(rows, batch.size).requires_grad_() for rows in local]

    masked, absent, weights = sent(batch.masked, device), sent(~present, device), stands_for(batch, device)
    scores, objective = taught(batch, device), weighted(objective, batch, device)

    def compute() -> tuple[Outcome, list[Tensor]]:
        outcome = compare(
            leaves[0], leaves[1], masked, leaves[2], absent, temperature, objective, weights, dimensions, scores
        )
        return outcome, [gradient[batch.rows] for gradient in torch.autograd.grad(outcome.loss, leaves)]

    with float32_products(tf32=False):
        outcome, gradients = queries.memory.beside(compute)
    queries.backward(gradients[0])
    documents.backward(torch.cat([gradients[1], take(gradients[2], local_present)]))
    return Outcome(outcome.loss.detach(), outcome.accuracy)


def stands_for(batch: TrainBatch, device: torch.device) -> Tensor | None:
    """How many documents each document stands for, as a tensor."""
    return None if batch.stands_for is None else sent(batch.stands_for, device)


def taught(batch: TrainBatch, device: torch.device) -> Tensor | None:
    """A teacher's scores, as a tensor."""
    return None if batch.taught is None else sent(batch.taught, device)


def weighted(objective: Objective, batch: TrainBatch, device: torch.device) -> Objective:
    """The loss in which the pairs of a batch have their weights."""
    return objective if batch.weights is None else partial(objective, weights=sent(batch.weights, device))


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
