"""Trains one encoder for queries and documents, with one vector per text."""

from collections.abc import Sequence
from pathlib import Path

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from batchwright.formats.shards import Manifest
from batchwright.retrievers.common.sentence_model import load_model, save_model
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Objective, Outcome
from trainers.common.card import write_card
from trainers.common.contrastive import contrast_batch
from trainers.common.embed import embed, preprocess
from trainers.common.gradient_cache import CachedForward
from trainers.common.train_job import TrainJob


class SentenceLearner:
    """A ``trainers.common.run.Learner`` for a SentenceTransformer; ``card`` is the template of its model card."""

    fresh: Sequence[nn.Parameter] = ()

    def __init__(self, job: TrainJob, temperature: float, objective: Objective, card: Path) -> None:
        self.model: SentenceTransformer = load_model(job.start_model, job.info.max_length, job.device)
        self._job, self._temperature, self._objective, self._card = job, temperature, objective, card

    def backward(self, batch: TrainBatch) -> Outcome:
        """See ``Learner``; uses a gradient cache over queries, documents and hard negatives."""
        queries = self._forward(batch.queries)
        documents = self._forward(batch.documents + batch.negatives)
        return contrast_batch(queries, documents, batch, self._temperature, self._objective)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder with a model card."""
        save_model(self.model, folder, self._job.info.prefixes.default)
        write_card(folder, self._card, self._job, manifest, steps)

    def _forward(self, texts: list[str]) -> CachedForward[dict[str, Tensor]]:
        chunk = self._job.common.mini_batch_size
        chunks = [preprocess(self.model, texts[start : start + chunk]) for start in range(0, len(texts), chunk)]
        return CachedForward(lambda features: embed(self.model, features), chunks)
