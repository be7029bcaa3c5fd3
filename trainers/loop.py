"""The training loop that variants share. It knows nothing of Ray: a process group is used where there is one."""

import math
import time
from pathlib import Path
from typing import Protocol

from torch import nn
from tqdm import tqdm

from formats.atomic import atomic_dir
from formats.errors import InputError
from formats.manifest import Manifest
from formats.results import write_tsv
from formats.shards import ShardSet
from trainers.batches import BatchReader, TrainBatch
from trainers.distributed import own_rows, rank, sum_gradients
from trainers.job import TrainJob
from trainers.loss import Outcome
from trainers.optimiser import build_optimiser
from trainers.randomness import seed_step
from trainers.state import Row, load_state, save_state
from trainers.steps import epoch_of, planned_steps

SAVE_EVERY_SECONDS = 120.0


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

    An unfinished run of the same job is gone on with.

    Raises:
        InputError: the shards are damaged or too few, or the loss is not finite.
    """
    shards = ShardSet.open(job.shards)
    steps = planned_steps(shards.manifest, job.common)
    reader = BatchReader(shards, job.params.prefixes, job.common.hard_negatives)
    curve = _train(job, learner, reader, steps)
    if rank() == 0:
        write_tsv(job.curve, curve)
        with atomic_dir(job.model) as folder:
            learner.save(folder, shards.manifest, steps)
        _state_file(job).unlink(missing_ok=True)


def _train(job: TrainJob, learner: Learner, reader: BatchReader, steps: int) -> list[Row]:
    model = learner.model.train()
    optimiser, schedule = build_optimiser(model, job.common, steps)
    curve = load_state(_state_file(job), model, optimiser, schedule)
    saved = time.monotonic()
    progress = tqdm(
        total=steps, initial=len(curve), desc=f"train {job.variant}", unit="step", mininterval=2, disable=rank() > 0
    )
    with progress:
        for step in range(len(curve), steps):
            seed_step(job.seed, step)
            outcome = learner.backward(reader.read(step, own_rows()))
            row = _row(step, epoch_of(reader.shards.manifest, step), outcome, float(schedule.get_last_lr()[0]))
            sum_gradients(model.parameters())
            norm = nn.utils.clip_grad_norm_(model.parameters(), job.common.clip)
            _check_finite(job, row, float(norm))
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            schedule.step()
            curve.append(row)
            progress.set_postfix(loss=f"{row['loss']:.4f}", refresh=False)
            progress.update()
            if rank() == 0 and time.monotonic() - saved >= SAVE_EVERY_SECONDS:
                save_state(_state_file(job), model, optimiser, schedule, curve)
                saved = time.monotonic()
    return curve


def _row(step: int, epoch: int, outcome: Outcome, learning_rate: float) -> Row:
    return {
        "step": step + 1,
        "epoch": epoch,
        "loss": float(outcome.loss),
        "accuracy": float(outcome.accuracy),
        "learning_rate": learning_rate,
        **outcome.measures,
    }


def _check_finite(job: TrainJob, row: Row, gradient_norm: float) -> None:
    if not (math.isfinite(row["loss"]) and math.isfinite(gradient_norm)):
        raise InputError(
            f"{job.shards}: at step {row['step']} the loss is {row['loss']:g}, its gradient's norm {gradient_norm:g}; "
            f"lower train.common.learning_rate or raise train.{job.variant}'s temperature"
        )


def _state_file(job: TrainJob) -> Path:
    return job.scratch / "state.pt"
