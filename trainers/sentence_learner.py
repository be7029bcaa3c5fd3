"""Training one encoder that gives one vector a text, for queries and documents alike."""

from pathlib import Path

from sentence_transformers import SentenceTransformer
from torch import Tensor

from formats.manifest import Manifest
from trainers.batches import TrainBatch
from trainers.card import write_card
from trainers.contrastive import contrast_batch
from trainers.gradient_cache import CachedForward
from trainers.job import TrainJob
from trainers.loss import Objective, Outcome
from trainers.sentence_model import embed, load_model, preprocess, save_model


class SentenceLearner:
    """A ``trainers.loop.Learner`` around a SentenceTransformer; ``card`` is the template of the model's card."""

    def __init__(self, job: TrainJob, temperature: float, objective: Objective, card: Path) -> None:
        self.model: SentenceTransformer = load_model(job.start_model, job.params.max_length, job.device)
        self._job, self._temperature, self._objective, self._card = job, temperature, objective, card

    def backward(self, batch: TrainBatch) -> Outcome:
        """Two-pass gradient over the whole batch; see ``trainers.gradient_cache``."""
        queries = self._forward(batch.queries)
        documents = self._forward(batch.documents + batch.negatives)
        return contrast_batch(queries, documents, batch, self._temperature, self._objective)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder with a model card."""
        save_model(self.model, folder, self._job.params.prefixes.default)
        write_card(folder, self._card, self._job, manifest, steps)

    def _forward(self, texts: list[str]) -> CachedForward[dict[str, Tensor]]:
        chunk = self._job.common.chunk
        chunks = [preprocess(self.model, texts[start : start + chunk]) for start in range(0, len(texts), chunk)]
        return CachedForward(lambda features: embed(self.model, features), chunks)
