"""Training the biencoder."""

from pathlib import Path
from typing import cast

from sentence_transformers import SentenceTransformer
from torch import Tensor

from formats.manifest import Manifest
from trainers.batches import TrainBatch
from trainers.biencoder.params import Params
from trainers.card import write_card
from trainers.contrastive import contrast_batch
from trainers.gradient_cache import CachedForward
from trainers.job import TrainJob
from trainers.loop import run_training
from trainers.loss import Outcome
from trainers.randomness import seed_start
from trainers.sentence_model import embed, load_model, preprocess, save_model


def train(job: TrainJob) -> None:
    """Train one rank; see ``trainers.variants.Variant``."""
    seed_start(job.seed)
    run_training(job, Biencoder(job))


class Biencoder:
    """A ``trainers.loop.Learner`` around a SentenceTransformer."""

    def __init__(self, job: TrainJob) -> None:
        self.model: SentenceTransformer = load_model(job.start_model, job.params.max_length, job.device)
        self._job = job
        self._params = cast(Params, job.params)

    def backward(self, batch: TrainBatch) -> Outcome:
        """Two-pass gradient over the whole batch; see ``trainers.gradient_cache``."""
        queries = self._forward(batch.queries)
        documents = self._forward(batch.documents + batch.negatives)
        return contrast_batch(queries, documents, batch, self._params.temperature)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder with a model card."""
        save_model(self.model, folder, self._job.params.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _forward(self, texts: list[str]) -> CachedForward[dict[str, Tensor]]:
        chunk = self._job.common.chunk
        chunks = [preprocess(self.model, texts[start : start + chunk]) for start in range(0, len(texts), chunk)]
        return CachedForward(lambda features: embed(self.model, features), chunks)
