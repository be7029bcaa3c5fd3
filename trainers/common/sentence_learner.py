"""Trains one encoder for queries and documents, with one vector per text."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sentence_transformers import SentenceTransformer
from torch import nn

from batchwright.formats.shards import Manifest
from batchwright.retrievers.common.model_folder import load_model, save_model
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Objective, Outcome
from trainers.common.card import write_card
from trainers.common.contrastive import contrast_batch
from trainers.common.embed import embed, preprocess
from trainers.common.job_passes import JobPasses
from trainers.common.texts import BatchTexts, prepare_texts
from trainers.common.train_job import TrainJob


class SentenceLearner:
    """A ``trainers.common.run.Learner`` for a SentenceTransformer; ``card`` is the template of its model card."""

    fresh: Sequence[nn.Parameter] = ()

    def __init__(self, job: TrainJob, temperature: float, objective: Objective, card: Path) -> None:
        self.model: SentenceTransformer = load_model(job.start_model, job.info.max_length, job.device)
        self._job, self._temperature, self._objective, self._card = job, temperature, objective, card
        self._passes = JobPasses(job)

    def prepare(self, batch: TrainBatch) -> BatchTexts:
        """See ``Learner``."""
        read = partial(preprocess, self.model)
        return prepare_texts(batch, read, read, self._passes.most)

    def backward(self, prepared: BatchTexts) -> Outcome:
        """See ``Learner``; uses a gradient cache over queries, documents and hard negatives."""
        batch, *sides = prepared
        queries, documents = (self._passes.forward(batch, partial(embed, self.model), side) for side in sides)
        return contrast_batch(queries, documents, batch, self._temperature, self._objective)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder with a model card."""
        save_model(self.model, folder, self._job.info.prefixes.default)
        write_card(folder, self._card, self._job, manifest, steps)
