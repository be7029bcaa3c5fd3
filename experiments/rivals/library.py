"""What a user of sentence-transformers would pick: its sampler, its losses and its mining, on the same training."""

from collections.abc import Iterator
from itertools import count

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
from sentence_transformers.sentence_transformer.losses import CachedGISTEmbedLoss, MultipleNegativesRankingLoss
from torch import Tensor

from experiments.common.small_models import BASE
from experiments.rivals.encoders import start_model
from experiments.rivals.pairs import Training
from experiments.rivals.streams import BATCH
from experiments.rivals.training import Batch, Loss, pairs_only

TEMPERATURE: float = BASE["train"]["biencoder"]["temperature"]


class Guided(CachedGISTEmbedLoss):
    """CachedGISTEmbedLoss for unit vectors: their cosines as one product, which is many times faster here."""

    def sim_matrix(self, embed1: Tensor, embed2: Tensor) -> Tensor:
        """Cosines ``(n, m)``."""
        return embed1 @ embed2.T


def no_duplicates(training: Training, _: int, seed: int) -> Iterator[Batch]:
    """Random batches in which no text occurs twice: the sampler that the library recommends for these losses."""
    return pairs_only(sampled(Dataset.from_dict({"anchor": training.queries, "positive": training.documents}), seed))


def ranking_loss(_: Training) -> Loss:
    """MultipleNegativesRankingLoss at our temperature."""
    library = MultipleNegativesRankingLoss(start_model("minilm", 0), scale=1 / TEMPERATURE)

    def loss(queries: Tensor, documents: Tensor, batch: Batch) -> Tensor:
        columns = list(torch.split(documents, len(batch.rows)))
        return library.compute_loss_from_embeddings([queries, *columns], queries.new_empty(0))

    return loss


def guided_loss(training: Training) -> Loss:
    """CachedGISTEmbedLoss at our temperature, else with its defaults; the guide is the surrogate."""
    surrogate = start_model("minilm", 0)
    library = Guided(surrogate, surrogate, temperature=TEMPERATURE, mini_batch_size=BATCH)

    def loss(queries: Tensor, documents: Tensor, batch: Batch) -> Tensor:
        sides = (training.vectors.queries, training.vectors.documents)
        guide = [[queries.new_tensor(side(batch.rows))] for side in sides]
        return library.calculate_loss([[queries], [documents]], guide)

    return loss


def sampled(dataset: Dataset, seed: int) -> Iterator[NDArray[np.int64]]:
    """The sampler's batches of rows, epoch after epoch."""
    sampler = NoDuplicatesBatchSampler(dataset, BATCH, drop_last=True, generator=torch.Generator(), seed=seed)
    for epoch in count() if len(sampler) else ():
        sampler.set_epoch(epoch)
        yield from (np.array(batch) for batch in sampler)
