"""The training loop that all trainings share. It does not depend on Ray: it uses a process group if there is one."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_linear_schedule_with_warmup

from batchwright.core.errors import InputError
from batchwright.core.terminal import counter
from trainers.common.checkpoint import CheckpointClock, Row, load_checkpoint, save_checkpoint
from trainers.common.distributed import rank, sum_gradients
from trainers.common.job import Job
from trainers.common.params import Optimisation
from trainers.common.passes import float32_products

T = TypeVar("T")
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


def build_optimiser(
    model: nn.Module, params: Optimisation, steps: int, fresh: Iterable[nn.Parameter] = ()
) -> tuple[AdamW, LambdaLR]:
    """Build optimiser and schedule for ``steps`` steps. Biases and norms, which have one dimension, do not decay.

    ``fresh`` are those of the model's parameters that the start model does not have; they learn at
    ``new_learning_rate``. The schedule's first learning rate is that of the other parameters.
    """
    new = {id(parameter) for parameter in fresh}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {
            "params": [each for each in trained if (id(each) in new) == is_new and (each.ndim > 1) == decays],
            "weight_decay": params.weight_decay if decays else 0.0,
            "lr": rate,
        }
        for is_new, rate in ((False, params.learning_rate), (True, params.new_learning_rate or params.learning_rate))
        for decays in (True, False)
    ]
    optimiser = AdamW(groups, lr=params.learning_rate, fused=True)
    warmup = round(params.warmup_ratio * steps)
    schedule: LambdaLR = get_linear_schedule_with_warmup(optimiser, warmup, steps)  # type: ignore[no-untyped-call]
    return optimiser, schedule


class Ahead(Generic[T]):
    """Calls ``prepare`` with the number of a step, one step ahead, until ``steps``.

    An error in it is raised at the step that it belongs to.
    """

    def __init__(self, prepare: Callable[[int], T], steps: int, executor: ThreadPoolExecutor) -> None:
        self._prepare, self._steps, self._executor = prepare, steps, executor
        self._next: tuple[int, Future[T]] | None = None

    def __call__(self, step: int) -> T:
        """Return what was prepared for ``step``, and begin with the next one."""
        known = self._next is not None and self._next[0] == step
        future = self._next[1] if known and self._next else self._submit(step)
        prepared = future.result()
        self._next = (step + 1, self._submit(step + 1)) if step + 1 < self._steps else None
        return prepared

    def settle(self) -> None:
        """Wait until nothing is being prepared: a tokenizer cannot be saved while it is in use."""
        if self._next:
            wait([self._next[1]])

    def _submit(self, step: int) -> Future[T]:
        return self._executor.submit(self._prepare, step)


@contextmanager
def ahead(prepare: Callable[[int], T], steps: int) -> Iterator[Ahead[T]]:
    """Yield an ``Ahead``; its thread ends with the block."""
    with ThreadPoolExecutor(1, "prepare") as executor:
        yield Ahead(prepare, steps, executor)
