"""Training CDE with a gradient cache over both stages."""

from pathlib import Path
from typing import cast

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional

from formats.manifest import Manifest
from trainers.batches import TrainBatch
from trainers.card import write_card
from trainers.cde.contextual_encoder import ContextualEncoder
from trainers.cde.folder import save_contextual, start_from
from trainers.cde.params import Params
from trainers.cde.shared_context import Features, SharedContext
from trainers.contrastive import contrast_batch
from trainers.gradient_cache import CachedForward
from trainers.job import TrainJob
from trainers.loop import run_training
from trainers.loss import Outcome
from trainers.randomness import seed_start


def train(job: TrainJob) -> None:
    """Train one rank; see ``trainers.variants.Variant``."""
    seed_start(job.seed)
    run_training(job, Contextual(job))


class Contextual:
    """A ``trainers.loop.Learner`` around a two-stage encoder.

    A batch's context are J of its own documents, or all where it has fewer; queries and documents share it.
    """

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self.encoder: ContextualEncoder = start_from(job.start_model, self._params).to(job.device)
        self.model = SentenceTransformer(modules=[self.encoder], device=job.device)

    def backward(self, batch: TrainBatch) -> Outcome:
        """The paper's two-stage gradient cache: loss and its gradient at the embeddings, then stage 2 again, which
        collects the gradient at the context vectors of all ranks' texts, then stage 1 again."""
        rng = np.random.default_rng([self._job.seed, batch.index])
        context = SharedContext(self.encoder, batch, self._split, self._params.null_share, rng)
        queries = self._read(batch.queries, context.prepared)
        documents = self._read(batch.documents + batch.negatives, context.prepared)
        outcome = contrast_batch(queries, documents, batch, self._params.temperature)
        context.backward()
        return outcome

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder with its own code and a model card."""
        save_contextual(self.model, folder, self._job.params.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _split(self, texts: list[str]) -> list[Features]:
        chunk = self._job.common.chunk
        return [self.encoder.preprocess(texts[start : start + chunk]) for start in range(0, len(texts), chunk)]

    def _read(self, texts: list[str], prepared: Tensor) -> CachedForward[Features]:
        def read(features: Features) -> Tensor:
            return functional.normalize(self.encoder.read(features, prepared), dim=-1)

        return CachedForward(read, self._split(texts))
