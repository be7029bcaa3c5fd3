"""Checkpoints of unfinished training runs."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from batchwright.core.atomic import atomic_file

Row = dict[str, float | int]


def save_checkpoint(file: Path, model: nn.Module, optimiser: Optimizer, schedule: LambdaLR, curve: list[Row]) -> None:
    """Write a checkpoint after ``len(curve)`` steps, atomically."""
    state = {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "schedule": schedule.state_dict(),
        "curve": curve,
    }
    with atomic_file(file) as temporary:
        torch.save(state, temporary)


def load_checkpoint(file: Path, model: nn.Module, optimiser: Optimizer, schedule: LambdaLR) -> list[Row]:
    """Restore what ``save_checkpoint`` wrote and return the curve; it is empty if there is no such file."""
    if not file.exists():
        return []
    state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    schedule.load_state_dict(state["schedule"])
    curve: list[Row] = state["curve"]
    return curve
