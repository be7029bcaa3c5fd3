"""Training on shards, as variants share it."""

from pathlib import Path
from typing import Protocol

from torch import nn

from formats.atomic import atomic_dir
from formats.manifest import Manifest
from formats.results import write_tsv
from formats.shards import ShardSet
from trainers.batches import BatchReader, TrainBatch
from trainers.distributed import own_rows, rank
from trainers.job import TrainJob
from trainers.loss import Outcome
from trainers.run import run_steps, state_file
from trainers.state import Row
from trainers.steps import epoch_of, planned_steps


class Learner(Protocol):
    """What a variant brings: a model, its gradient on a batch and its form on disk."""

    @property
    def model(self) -> nn.Module:
        """What is trained."""

    def backward(self, batch: TrainBatch) -> Outcome:
        """Add the gradient of the whole batch's loss at this rank's rows to the parameters' gradients."""

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write the trained model into ``folder``."""


def run_training(job: TrainJob, learner: Learner) -> None:
    """Train on the job's shards; rank 0 publishes curve and model when all steps are done.

    Raises:
        InputError: the shards are damaged or too few, or the loss is not finite.
    """
    shards = ShardSet.open(job.shards)
    steps = planned_steps(shards.manifest, job.common)
    reader = BatchReader(shards, job.params.prefixes, job.common.hard_negatives)

    def backward(step: int) -> Row:
        outcome = learner.backward(reader.read(step, own_rows()))
        epoch = epoch_of(shards.manifest, step)
        loss, accuracy, measures = outcome
        return {"epoch": epoch, "loss": float(loss), "accuracy": float(accuracy), **measures}

    common = job.common
    if job.params.learning_rate is not None:
        common = common.model_copy(update={"learning_rate": job.params.learning_rate})
    advice = f"lower train.common.learning_rate or raise train.{job.variant}'s temperature"
    curve = run_steps(job, learner.model, common, steps, backward, task="train", advice=advice)
    if rank() == 0:
        write_tsv(job.curve, curve)
        with atomic_dir(job.model) as folder:
            learner.save(folder, shards.manifest, steps)
        state_file(job).unlink(missing_ok=True)
