"""What a user of sentence-transformers would pick: its sampler, its losses and its mining, on the same training."""

from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from itertools import count
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
from sentence_transformers.sentence_transformer.losses import CachedGISTEmbedLoss, MultipleNegativesRankingLoss
from sentence_transformers.util import mine_hard_negatives
from torch import Tensor

from experiments.rivals.encoders import start_model
from experiments.rivals.sets import Training
from experiments.rivals.training import Batch, Loss, pairs_only

RELATIVE_MARGIN = 0.05


def no_duplicates(training: Training, _: int, seed: int) -> Iterator[Batch]:
    """Random batches in which no text occurs twice: the sampler that the library recommends for these losses."""
    pairs = Dataset.from_dict({"anchor": training.queries, "positive": training.documents})
    return pairs_only(sampled(pairs, training.batch, seed))


def sampled(dataset: Dataset, size: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """The sampler's batches of rows, epoch after epoch."""
    sampler = NoDuplicatesBatchSampler(dataset, size, drop_last=True, generator=torch.Generator(), seed=seed)
    for epoch in count() if len(sampler) else ():
        sampler.set_epoch(epoch)
        yield from (np.array(batch) for batch in sampler)


def ranking_loss(_: Training) -> Loss:
    """MultipleNegativesRankingLoss."""
    library = MultipleNegativesRankingLoss(start_model("minilm", 0))

    def loss(queries: Tensor, documents: Tensor, batch: Batch, temperature: Tensor) -> Tensor:
        library.scale = 1 / temperature  # type: ignore[assignment]
        columns = list(torch.split(documents, len(batch.rows)))
        return library.compute_loss_from_embeddings([queries, *columns], queries.new_empty(0))

    return loss


class Guided(CachedGISTEmbedLoss):
    """CachedGISTEmbedLoss for unit vectors: their cosines as one product, which is many times faster here."""

    def sim_matrix(self, embed1: Tensor, embed2: Tensor) -> Tensor:
        """Cosines ``(n, m)``."""
        return embed1 @ embed2.T


def guided_loss(training: Training) -> Loss:
    """CachedGISTEmbedLoss with its defaults, but for the temperature; the guide is the surrogate."""
    surrogate = start_model("minilm", 0)
    library = Guided(surrogate, surrogate, mini_batch_size=training.batch)

    def loss(queries: Tensor, documents: Tensor, batch: Batch, temperature: Tensor) -> Tensor:
        library.temperature = temperature  # type: ignore[assignment]
        sides = (training.vectors.queries, training.vectors.documents)
        guide = [[queries.new_tensor(side(batch.rows))] for side in sides]
        return library.calculate_loss([[queries], [documents]], guide)

    return loss


class Remembered(SentenceTransformer):
    """A model that answers with the vectors of the training pairs that are already there."""

    def remember(self, training: Training) -> "Remembered":
        """Take over the vectors of ``training``."""
        rows = slice(None)
        self.of_queries = dict(zip(training.queries, training.vectors.queries(rows), strict=True))
        self.of_documents = dict(zip(training.documents, training.vectors.documents(rows), strict=True))
        return self

    def encode_query(self, inputs: list[str], **_: Any) -> NDArray[np.float32]:  # type: ignore[override]
        """Vectors of queries."""
        return np.stack([self.of_queries[text] for text in inputs])

    def encode_document(self, inputs: list[str], **_: Any) -> NDArray[np.float32]:  # type: ignore[override]
        """Vectors of documents."""
        return np.stack([self.of_documents[text] for text in inputs])


def mined(training: Training, _: int, seed: int) -> Iterator[Batch]:
    """Random batches of pairs with one mined hard negative each, the best-ranked within the relative margin.

    Pairs for which the library finds none are left out, as it does.
    """
    pairs = Dataset.from_dict({"anchor": training.queries, "positive": training.documents})
    with redirect_stderr(StringIO()):
        with_negatives = mine_hard_negatives(
            pairs,
            Remembered(modules=list(start_model("minilm", 0)), device="cpu").remember(training),
            relative_margin=RELATIVE_MARGIN,
            num_negatives=1,
            output_format="n-tuple",
            verbose=False,
        )
    print(f"mine_hard_negatives leaves out {len(pairs) - len(with_negatives)} of {len(pairs)} pairs", flush=True)
    row_of = {pair: row for row, pair in enumerate(zip(training.queries, training.documents, strict=True))}
    row_of_document = {text: row for row, text in enumerate(training.documents)}
    rows = np.array([row_of[pair] for pair in zip(with_negatives["anchor"], with_negatives["positive"], strict=True)])
    negatives = np.array([row_of_document[text] for text in with_negatives["negative_1"]])
    for batch in sampled(with_negatives, training.batch, seed):
        yield Batch(rows=rows[batch], negatives=negatives[batch])
