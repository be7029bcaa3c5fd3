"""Passes of a job's texts through its model."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import IntEnum

import torch
from torch import Tensor

from batchwright.training.batches import TrainBatch
from trainers.common.gradient_cache import CachedForward
from trainers.common.passes.chunk import Chunk
from trainers.common.passes.groups import Features, Group
from trainers.common.passes.precision import training_pass
from trainers.common.train_job import TrainJob


class Draws(IntEnum):
    """What dropout is drawn for. A pass draws by the seed, the batch's number, one of these and its first text."""

    TEXTS = 0
    CONTEXT_DOCUMENTS = 1
    CONTEXT = 2


class JobPasses:
    """Runs texts through a model as a job's parameters say.

    ``most`` is how many of a side's texts to prepare as one group at most.
    """

    def __init__(self, job: TrainJob) -> None:
        self.job, self._chunk = job, Chunk.of(job.common.mini_batch_size, job.info.max_length, job.device)
        self.most = self._chunk.size

    def forward(
        self,
        batch: TrainBatch,
        encode: Callable[[Features], Tensor],
        groups: list[Group],
        draws: Draws = Draws.TEXTS,
    ) -> CachedForward:
        """Encode groups of the batch's texts; ``encode`` runs the model on a group's inputs."""

        def run(group: Group) -> Tensor:
            with self.training(batch, draws, int(group.numbers[0])):
                return encode(group.features)

        return CachedForward(run, groups, self._chunk)

    def training(self, batch: TrainBatch, draws: Draws, first: int = 0) -> AbstractContextManager[None]:
        """Run the block's model on a batch's texts from number ``first`` on."""
        job = self.job
        draw = [job.seed, batch.index, draws, first] if job.common.dropout != 0 else None
        return training_pass(job.common.precision, draw, torch.device(job.device))
