"""Trains XTR."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast, get_args

from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense
from torch import nn

from batchwright.formats.shards import Manifest
from batchwright.retrievers.xtr.model import Task, save_token_model
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Outcome
from trainers.common.card import write_card
from trainers.common.gradient_cache import CachedForward
from trainers.common.job_passes import JobPasses
from trainers.common.passes.groups import Group
from trainers.common.texts import BatchTexts, prepare_texts
from trainers.common.train_job import TrainJob
from trainers.xtr.contrast import contrast_tokens
from trainers.xtr.embed import embed_tokens
from trainers.xtr.params import Params
from trainers.xtr.start import start_from

TASKS: tuple[Task, ...] = get_args(Task)


class TokenLearner:
    """A ``trainers.common.run.Learner`` for a MultiVectorEncoder."""

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self._passes = JobPasses(job)
        self.model: MultiVectorEncoder = start_from(job.start_model, job.info, job.device, self._params.width)
        new = [module for module in self.model if isinstance(module, Dense)] if job.info.variant != "xtr" else []
        self.fresh: Sequence[nn.Parameter] = [each for module in new for each in module.parameters()]

    def prepare(self, batch: TrainBatch) -> BatchTexts:
        """See ``Learner``."""
        query, document = (partial(self.model.preprocess, task=task) for task in TASKS)
        return prepare_texts(batch, query, document, self._passes.most)

    def backward(self, prepared: BatchTexts) -> Outcome:
        """See ``Learner``; uses a gradient cache, and one retrieval pool for the whole batch."""
        batch, *sides = prepared
        queries, documents = (self._forward(batch, groups, task) for groups, task in zip(sides, TASKS, strict=True))
        k = self._params.k if self._params.score == "xtr" else None
        return contrast_tokens(queries, documents, batch, k, self._params.temperature)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a MultiVectorEncoder folder with a model card."""
        save_token_model(self.model, folder, self._job.info.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _forward(self, batch: TrainBatch, groups: list[Group], task: Task) -> CachedForward:
        length = max(group.features["input_ids"].shape[1] for group in groups)
        return self._passes.forward(batch, lambda each: embed_tokens(self.model, each, task, length), groups)
