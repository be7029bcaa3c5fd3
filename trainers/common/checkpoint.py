"""Checkpoints of unfinished training runs: the last two, each named by its steps and its SHA-256."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from batchwright.core.atomic import atomic_file
from batchwright.core.fingerprint import file_sha256

Row = dict[str, float | int]
_KEPT = 2


def save_checkpoint(folder: Path, model: nn.Module, optimiser: Optimizer, schedule: LambdaLR, curve: list[Row]) -> None:
    """Write a checkpoint after ``len(curve)`` steps into ``folder``, atomically; only the one before it stays."""
    state = {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "schedule": schedule.state_dict(),
        "curve": curve,
    }
    unnamed = folder / "new"
    with atomic_file(unnamed) as temporary, temporary.open("wb") as handle:  # torch's own files hide why they fail
        torch.save(state, handle)
    unnamed.replace(folder / f"checkpoint-{len(curve):09d}-{file_sha256(unnamed)}.pt")
    for old in _checkpoints(folder)[_KEPT:]:
        old.unlink()


def load_checkpoint(folder: Path, model: nn.Module, optimiser: Optimizer, schedule: LambdaLR) -> list[Row]:
    """Restore the last checkpoint and return its curve, which is empty if there is none.

    A damaged one is set aside, with a warning, and the one before it is restored.
    """
    for file in _checkpoints(folder):
        if file_sha256(file) != file.stem.rpartition("-")[2]:
            print(f"warning: {file}: damaged, and set aside; training goes on from before", file=sys.stderr)
            with suppress(FileNotFoundError):  # another worker was faster
                file.replace(file.with_suffix(".damaged"))
            continue
        state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
        curve: list[Row] = state["curve"]
        return curve
    return []


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a finished run."""
    for file in [*_checkpoints(folder), *folder.glob("checkpoint-*.damaged")]:
        file.unlink()


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints, newest first."""
    return sorted(folder.glob("checkpoint-*.pt"), reverse=True)
