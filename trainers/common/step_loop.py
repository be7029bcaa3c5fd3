"""The training loop that all trainings share, and its checkpoints.

It does not depend on Ray: it uses a process group if there is one.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_linear_schedule_with_warmup

from batchwright.core.atomic import faults
from batchwright.core.errors import InputError
from batchwright.core.storage import Storage
from batchwright.core.terminal import counter, duration
from trainers.common.distributed import rank, sum_gradients, world_size
from trainers.common.job import Job
from trainers.common.params import Optimisation
from trainers.common.passes import float32_products
from trainers.common.shares import clip_gradients, gathered, part_of, shared

SAVE_EVERY_SECONDS = 120.0
FIRST = 10
"""Steps after which the time that is left is said."""
_KEPT = 2
_STATE = "state.pt"

Row = dict[str, float | int]
"""A step's columns of the curve."""
Measures = Mapping[str, float | int | Tensor]

Backward = Callable[[int], Measures]
"""Backpropagates a step's loss at this rank's rows; returns the step's columns of the curve, which include ``loss``.

Numbers that a GPU computes stay tensors: reading one would wait for it."""


class DivergedError(InputError):
    """The loss or its gradient is not finite."""


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
        DivergedError: the loss or its gradient is not finite; ``advice`` says what to change.
    """
    optimiser, schedule = build_optimiser(model.train(), params, steps, fresh)
    curve = load_checkpoint(job.storage, model, optimiser, schedule)
    clock = CheckpointClock(SAVE_EVERY_SECONDS, job.device)
    progress = counter(steps, initial=len(curve), desc=f"{task} {job.name}", unit="step", delay=0, disable=rank() > 0)
    for row in curve:
        record(row)
    pace = Pace(steps)
    with progress, float32_products(tf32=params.precision == "tfloat32" and job.device == "cuda"):
        for step in range(len(curve), steps):
            measures = {"step": step + 1, **backward(step), "learning_rate": float(schedule.get_last_lr()[0])}
            sum_gradients(model.parameters())
            total = clip_gradients(model.parameters(), params.max_grad_norm)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            schedule.step()
            row = _fetch({**measures, "norm": total})  # waits for the whole step, once
            norm = row.pop("norm")
            if not (math.isfinite(row["loss"]) and math.isfinite(norm)):
                raise DivergedError(
                    f"{task} {job.name}: at step {step + 1} the loss is {row['loss']:g} and its gradient norm is "
                    f"{norm:g}; {advice}"
                )
            curve.append(row)
            record(row)
            progress.set_postfix(loss=f"{row['loss']:.4f}", refresh=False)
            progress.update()
            if rank() == 0 and (told := pace.after(step + 1)):
                progress.write(f"{task} {job.name}: {told}", file=sys.stderr)
            if clock.strikes():
                job.report(curve[-1], save_checkpoint(job.storage, model, optimiser, schedule, curve))
    return curve


class Pace:
    """Says once, after ``FIRST`` steps, how long the rest will take; the first step does not count, it warms up."""

    def __init__(self, steps: int) -> None:
        self._steps, self._done = steps, 0
        self._start = 0.0

    def after(self, step: int) -> str:
        """Return what to say after a step, mostly nothing."""
        self._done += 1
        if self._done == 1:
            self._start = time.monotonic()
        if self._done != FIRST or step >= self._steps:
            return ""
        left = (time.monotonic() - self._start) / (FIRST - 1) * (self._steps - step)
        return f"{self._steps - step:,} of {self._steps:,} steps left, about {duration(left)} at the pace so far"


def _fetch(measures: Measures) -> Row:
    """Bring all numbers here, in one transfer."""
    tensors = {key: value.detach().double() for key, value in measures.items() if isinstance(value, Tensor)}
    numbers = dict(zip(tensors, torch.stack(list(tensors.values())).tolist(), strict=True))
    return {key: numbers.get(key, value) for key, value in measures.items()}


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
    optimiser = AdamW(groups, lr=params.learning_rate, eps=params.adam_epsilon, fused=True)
    warmup = round(params.warmup_ratio * steps)
    schedule: LambdaLR = get_linear_schedule_with_warmup(optimiser, warmup, steps)
    return optimiser, schedule


def save_checkpoint(
    storage: Storage, model: nn.Module, optimiser: Optimizer, schedule: LambdaLR, curve: list[Row]
) -> Storage | None:
    """Write a checkpoint after ``len(curve)`` steps, a folder with checksums, and return it; the one before it stays.

    Weights that are not trained are left out. It is written whole or not at all, by rank 0; all ranks must call it, and
    the number of those that go on with it does not matter.
    """
    shares = gathered({"model": trained_state(model), "optimiser": optimiser.state_dict()})
    if rank() > 0:
        return None
    state = {**shares, "schedule": schedule.state_dict(), "curve": curve}
    name = f"checkpoint-{len(curve):09d}"
    with storage.publish(name) as folder, (folder / _STATE).open("wb") as handle:  # torch's own hides why it fails
        torch.save(state, handle)
    storage.remove(*_checkpoints(storage)[_KEPT:])
    return storage / name


def load_checkpoint(storage: Storage, model: nn.Module, optimiser: Optimizer, schedule: LambdaLR) -> list[Row]:
    """Restore the last checkpoint and return its curve, which is empty if there is none.

    One that is damaged, or not whole, is removed with a warning, and the one before it is restored.
    """
    for name in _checkpoints(storage):
        if (state := _read(storage, name, mapped=shared(model))) is None:
            print(f"warning: {storage / name}: damaged, and removed; training goes on from before", file=sys.stderr)
            storage.remove(name)
            continue
        set_trained(model, state["model"])
        _set_optimiser(optimiser, state["optimiser"])
        schedule.load_state_dict(state["schedule"])
        curve: list[Row] = state["curve"]
        return curve
    return []


def trained_state(model: nn.Module) -> dict[str, Any]:
    """The state of ``model`` without the weights that nothing changes."""
    frozen = {name for name, each in model.named_parameters(remove_duplicate=False) if not each.requires_grad}
    return {name: each for name, each in model.state_dict().items() if name not in frozen}


def set_trained(model: nn.Module, state: Mapping[str, Any]) -> None:
    """Give ``model`` what ``trained_state`` returned, whole; all else stays as it is."""
    own = model.state_dict()
    model.load_state_dict({**own, **{name: part_of(each, own[name]) for name, each in state.items()}})


def _set_optimiser(optimiser: Optimizer, state: Mapping[str, Any]) -> None:
    trained = [each for group in optimiser.param_groups for each in group["params"]]
    parts = {
        number: {name: part_of(each, trained[number]) for name, each in of_one.items()}
        for number, of_one in state["state"].items()
    }
    optimiser.load_state_dict({**state, "state": parts})


def remove_checkpoints(storage: Storage) -> None:
    """Remove the checkpoints of a finished run."""
    storage.remove(*_checkpoints(storage))


def _read(storage: Storage, name: str, *, mapped: bool) -> dict[str, Any] | None:
    """Read a checkpoint, unless it is damaged; another worker may remove it meanwhile because it is.

    One that is ``mapped`` takes no memory before somebody reads its tensors.
    """
    try:
        with storage.fetch(name) as folder:
            if any(faults(folder)):
                return None
            state: dict[str, Any] = torch.load(folder / _STATE, map_location="cpu", weights_only=True, mmap=mapped)
            return state
    except FileNotFoundError:
        return None


def _checkpoints(storage: Storage) -> list[str]:
    """Return the names of the checkpoints, newest first."""
    return [name for name in reversed(storage.names()) if name.startswith("checkpoint-")]


class CheckpointClock:
    """Strikes about every ``seconds``, on all ranks at once if each asks after every step.

    Rank 0 has the time. It tells the others rarely, since that makes a GPU wait: whether it strikes, and after how many
    steps to ask it again. These are as many as fit into what is left at the pace since it was asked last, but at most
    twice as many as before, in case the steps become slower.
    """

    def __init__(self, seconds: float, device: str) -> None:
        self._seconds, self._device = seconds, device
        self._struck = self._asked = time.monotonic()
        self._steps = self._left = 1

    def strikes(self) -> bool:
        """Return whether to save now, after a step."""
        self._left -= 1
        if self._left:
            return False
        strikes, self._left = self._rank_0s(*self._look(time.monotonic()))
        self._steps = self._left
        return bool(strikes)

    def _look(self, now: float) -> tuple[int, int]:
        strikes = now - self._struck >= self._seconds
        if strikes:
            self._struck = now
        pace = max(now - self._asked, 1e-6) / self._steps
        self._asked = now
        fit = int((self._struck + self._seconds - now) / pace)
        return int(strikes), max(1, min(fit, 2 * self._steps))

    def _rank_0s(self, strikes: int, steps: int) -> tuple[int, int]:
        if world_size() == 1:
            return strikes, steps
        told = torch.tensor([strikes, steps], device=self._device)
        dist.broadcast(told, src=0)
        strikes, steps = told.tolist()
        return strikes, steps
