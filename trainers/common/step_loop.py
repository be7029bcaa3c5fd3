"""The training loop that all trainings share. It does not depend on Ray: it uses a process group if there is one."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from batchwright.core.bar import counter
from batchwright.core.errors import InputError
from trainers.common.checkpoint import Row, load_checkpoint, save_checkpoint
from trainers.common.checkpoint_clock import CheckpointClock
from trainers.common.distributed import rank, sum_gradients
from trainers.common.job import Job
from trainers.common.optimiser import build_optimiser
from trainers.common.params import Optimisation
from trainers.common.passes.precision import float32_products

SAVE_EVERY_SECONDS = 120.0

Measures = Mapping[str, float | int | Tensor]
Backward = Callable[[int], Measures]
"""Backpropagates a step's loss at this rank's rows; returns the step's columns of the curve, which include ``loss``.

Numbers that a GPU computes stay tensors: reading one would wait for it."""


def run_steps(
    job: Job,
    model: nn.Module,
    params: Optimisation,
    steps: int,
    backward: Backward,
    *,
    task: str,
    advice: str,
    fresh: Sequence[nn.Parameter] = (),
    record: Callable[[Row], None] = lambda _: None,
) -> list[Row]:
    """Train ``model`` and return its curve, one row per step. Resumes an unfinished run of the same job.

    ``task`` names the training in the progress bar and in messages. ``fresh`` are the parameters that learn at
    ``new_learning_rate``; the curve shows the learning rate of the others. ``record`` is called with each row of the
    curve, in a resumed run with those that it had, too.

    Raises:
        InputError: the loss or its gradient is not finite; ``advice`` says what to change.
    """
    optimiser, schedule = build_optimiser(model.train(), params, steps, fresh)
    curve = load_checkpoint(job.storage, model, optimiser, schedule)
    clock = CheckpointClock(SAVE_EVERY_SECONDS, job.device)
    progress = counter(steps, initial=len(curve), desc=f"{task} {job.name}", unit="step", delay=0, disable=rank() > 0)
    for row in curve:
        record(row)
    with progress, float32_products(tf32=params.precision == "tfloat32" and job.device == "cuda"):
        for step in range(len(curve), steps):
            measures = {"step": step + 1, **backward(step), "learning_rate": float(schedule.get_last_lr()[0])}
            sum_gradients(model.parameters())
            total = nn.utils.clip_grad_norm_(model.parameters(), params.max_grad_norm)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            schedule.step()
            row = _read({**measures, "norm": total})  # waits for the whole step, once
            norm = row.pop("norm")
            if not (math.isfinite(row["loss"]) and math.isfinite(norm)):
                raise InputError(
                    f"{task} {job.name}: at step {step + 1} the loss is {row['loss']:g} and its gradient norm is "
                    f"{norm:g}; {advice}"
                )
            curve.append(row)
            record(row)
            progress.set_postfix(loss=f"{row['loss']:.4f}", refresh=False)
            progress.update()
            if clock.strikes():
                saved = save_checkpoint(job.storage, model, optimiser, schedule, curve) if rank() == 0 else None
                job.report(curve[-1], saved)
    return curve


def _read(measures: Measures) -> Row:
    """Bring all numbers here, in one transfer."""
    found = {key: each.detach().double() for key, each in measures.items() if isinstance(each, Tensor)}
    values = torch.stack(list(found.values())).tolist()
    read = dict(zip(found, values, strict=True))
    return {key: read.get(key, each) for key, each in measures.items()}
