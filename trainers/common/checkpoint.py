"""Checkpoints of unfinished training runs: the last two, each a folder with checksums, named by its steps."""

import sys
import time
from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from batchwright.core.atomic import faults
from batchwright.core.storage import Storage
from trainers.common.distributed import world_size

Row = dict[str, float | int]
_KEPT = 2
_STATE = "state.pt"


def save_checkpoint(
    storage: Storage, model: nn.Module, optimiser: Optimizer, schedule: LambdaLR, curve: list[Row]
) -> Storage:
    """Write a checkpoint after ``len(curve)`` steps, whole or not at all, and return it; the one before it stays."""
    state = {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "schedule": schedule.state_dict(),
        "curve": curve,
    }
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
        if (state := _read(storage, name)) is None:
            print(f"warning: {storage / name}: damaged, and removed; training goes on from before", file=sys.stderr)
            storage.remove(name)
            continue
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
        curve: list[Row] = state["curve"]
        return curve
    return []


def remove_checkpoints(storage: Storage) -> None:
    """Remove the checkpoints of a finished run."""
    storage.remove(*_checkpoints(storage))


def _read(storage: Storage, name: str) -> dict[str, Any] | None:
    """Read a checkpoint, unless it is damaged; another worker may remove it meanwhile because it is."""
    try:
        with storage.fetch(name) as folder:
            if any(faults(folder)):
                return None
            state: dict[str, Any] = torch.load(folder / _STATE, map_location="cpu", weights_only=True)
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
