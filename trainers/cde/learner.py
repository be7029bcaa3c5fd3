"""Trains CDE with a gradient cache over both stages."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional

from batchwright.formats.shards import Manifest
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.folder import save_contextual
from trainers.cde.params import Params
from trainers.cde.shared_context import Features, SharedContext
from trainers.cde.start import start_from
from trainers.common.batches import TrainBatch
from trainers.common.card import write_card
from trainers.common.contrastive import contrast_batch
from trainers.common.gradient_cache import CachedForward
from trainers.common.losses import Outcome
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
        self.fresh: Sequence[nn.Parameter] = [] if job.info.variant == "cde" else [self.encoder.null]

    def backward(self, batch: TrainBatch) -> Outcome:
        """See ``Learner``; uses the paper's two-stage gradient cache.

        The loss gives the gradient at the embeddings. Stage 2 then runs again and collects the gradient at the context
        vectors, over the texts of all ranks. Finally, stage 1 runs again with that gradient.
        """
        rng = np.random.default_rng([self._job.seed, batch.index])
        context = SharedContext(self.encoder, batch, self._split, self._params.null_share, rng)
        queries = self._read(batch.queries, context.prepared)
        documents = self._read(batch.documents + batch.negatives, context.prepared)
        outcome = contrast_batch(queries, documents, batch, self._params.temperature)
        context.backward()
        return outcome

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder that contains the model's code and a model card."""
        save_contextual(self.model, folder, self._job.info.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _split(self, texts: list[str]) -> list[Features]:
        chunk = self._job.common.mini_batch_size
        return [self.encoder.preprocess(texts[start : start + chunk]) for start in range(0, len(texts), chunk)]

    def _read(self, texts: list[str], prepared: Tensor) -> CachedForward[Features]:
        def read(features: Features) -> Tensor:
            return functional.normalize(self.encoder.read(features, prepared), dim=-1)

        return CachedForward(read, self._split(texts))
