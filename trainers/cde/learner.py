"""Trains CDE with a gradient cache over both stages."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import nn

from batchwright.formats.shards import Manifest
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.retriever import save_contextual
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Outcome
from trainers.cde.params import Params
from trainers.cde.shared_context import ContextTexts, SharedContext
from trainers.cde.start import start_from
from trainers.common.card import write_card
from trainers.common.contrastive import contrast_batch
from trainers.common.embed import embed, preprocess
from trainers.common.job_passes import JobPasses
from trainers.common.texts import BatchTexts, prepare_texts
from trainers.common.train_job import TrainJob


class ContextualLearner:
    """A ``trainers.common.run.Learner`` for a two-stage encoder.

    The queries and documents of a batch share one context: J of the batch's documents, or all of them if it has fewer.
    """

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self._passes = JobPasses(job)
        self.encoder: ContextualEncoder = start_from(job.start_model, self._params, job.info).to(job.device)
        self.model = SentenceTransformer(modules=[self.encoder], device=job.device)
        self.fresh: Sequence[nn.Parameter] = [] if job.info.variant == "cde" else [self.encoder.gate]

    def prepare(self, batch: TrainBatch) -> tuple[BatchTexts, ContextTexts | None]:
        """See ``Learner``; a share of the batches is read without context."""
        read, most = partial(preprocess, self.model), self._passes.most
        texts = prepare_texts(batch, read, read, most)
        rng = np.random.default_rng([self._job.seed, batch.index])
        if rng.random() < self._params.context_dropout or not self.encoder.documents:
            return texts, None
        return texts, ContextTexts.choose(batch, self.encoder.documents, self.encoder.first.preprocess, most, rng)

    def backward(self, prepared: tuple[BatchTexts, ContextTexts | None]) -> Outcome:
        """See ``Learner``; uses the paper's two-stage gradient cache.

        The loss gives the gradient at the embeddings. Stage 2 then runs again and collects the gradient at the context,
        over the texts of all ranks. Finally, stage 1 runs again with that gradient.
        """
        (batch, *sides), chosen = prepared
        context = SharedContext(self._passes, self.encoder, batch, chosen) if chosen else None
        memory = context.prepared if context else None
        queries, documents = (
            self._passes.forward(batch, lambda each: embed(self.model, {**each, "context": memory}), groups)
            for groups in sides
        )
        outcome = contrast_batch(queries, documents, batch, self._params.temperature)
        if context:
            context.backward()
        return outcome

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder that contains the model's code and a model card."""
        save_contextual(self.model, folder, self._job.info.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)
