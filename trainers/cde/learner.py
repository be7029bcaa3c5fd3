"""Trains CDE with a gradient cache over both stages."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from batchwright.formats.shards import Manifest
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.folder import save_contextual
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Outcome
from trainers.cde.params import Params
from trainers.cde.shared_context import Features, SharedContext
from trainers.cde.start import start_from
from trainers.common.card import write_card
from trainers.common.contrastive import contrast_batch
from trainers.common.embed import embed, preprocess
from trainers.common.gradient_cache import CachedForward
from trainers.common.train_job import TrainJob


class ContextualLearner:
    """A ``trainers.common.run.Learner`` for a two-stage encoder.

    The queries and documents of a batch share one context: J of the batch's documents, or all of them if it has fewer.
    """

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self.encoder: ContextualEncoder = start_from(job.start_model, self._params, job.info).to(job.device)
        self.model = SentenceTransformer(modules=[self.encoder], device=job.device)
        self.fresh: Sequence[nn.Parameter] = [] if job.info.variant == "cde" else [self.encoder.gate]

    def backward(self, batch: TrainBatch) -> Outcome:
        """See ``Learner``; uses the paper's two-stage gradient cache.

        The loss gives the gradient at the embeddings. Stage 2 then runs again and collects the gradient at the context,
        over the texts of all ranks. Finally, stage 1 runs again with that gradient.
        """
        rng = np.random.default_rng([self._job.seed, batch.index])
        left_out = rng.random() < self._params.context_dropout or not self.encoder.documents
        context = None if left_out else SharedContext(self.encoder, batch, self._split_context, rng)
        prepared = context.prepared if context else None
        queries = self._read(batch.queries, prepared)
        documents = self._read(batch.documents + batch.negatives, prepared)
        outcome = contrast_batch(queries, documents, batch, self._params.temperature)
        if context:
            context.backward()
        return outcome

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder that contains the model's code and a model card."""
        save_contextual(self.model, folder, self._job.info.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _split_context(self, texts: list[str]) -> list[Features]:
        return [self.encoder.first.preprocess(chunk) for chunk in self._chunks(texts)]

    def _read(self, texts: list[str], prepared: Tensor | None) -> CachedForward[Features]:
        def read(features: Features) -> Tensor:
            return embed(self.model, {**features, "context": prepared})

        return CachedForward(read, [preprocess(self.model, chunk) for chunk in self._chunks(texts)])

    def _chunks(self, texts: list[str]) -> list[list[str]]:
        size = self._job.common.mini_batch_size
        return [texts[start : start + size] for start in range(0, len(texts), size)]
