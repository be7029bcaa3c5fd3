"""Execution settings, all environment variables: how and where a stage runs, never what it produces."""

import os
from pathlib import Path
from typing import NamedTuple

from batchwright.core.errors import InputError

SCRATCH = Path(".scratch")
"""A project's own scratch folder, ignored by git and DVC."""
WORKERS = "BATCHWRIGHT_TRAIN_WORKERS"


def scratch_root() -> Path:
    """Return ``BATCHWRIGHT_SCRATCH``, by default the project's own."""
    return Path(os.environ.get("BATCHWRIGHT_SCRATCH", SCRATCH))


def scratch(stage: str, fingerprint: str = "") -> Path:
    """Return a folder for a stage's work in ``scratch_root``, creating it if necessary.

    Its name is the fingerprint of everything that determines its content, so stale work is never reused. Without a
    fingerprint, return the folder of all the stage's work.
    """
    folder = scratch_root() / stage / fingerprint
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def cpus() -> int:
    """CPUs that this process may use; where the system does not say, all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers() -> int:
    """Processes or threads that share a stage's work: ``BATCHWRIGHT_WORKERS``, by default one per CPU."""
    return _count("BATCHWRIGHT_WORKERS", cpus(), least=1)


class Workers(NamedTuple):
    """The fewest and the most Ray Train workers of a training; it takes as many of them as the cluster has room for."""

    fewest: int
    most: int

    def __str__(self) -> str:
        return f"{self.fewest}:{self.most}" if self.fewest < self.most else str(self.most)


def train_workers() -> Workers:
    """Ray Train workers: ``BATCHWRIGHT_TRAIN_WORKERS``, a number or a range such as ``1:4``.

    0 (the default) trains in this process.
    """
    value = os.environ.get(WORKERS, "0")
    fewest, _, most = value.partition(":")
    if ":" not in value:
        return Workers(*[_count(WORKERS, 0)] * 2)
    if not (fewest.isdecimal() and most.isdecimal() and 1 <= int(fewest) <= int(most)):
        raise InputError(f"environment variable {WORKERS}: expected a number or a range such as 1:4, found {value!r}")
    return Workers(int(fewest), int(most))


def ray_address() -> str:
    """The Ray cluster to train on: ``RAY_ADDRESS``, by default one that is started for the training, ``local``."""
    return os.environ.get("RAY_ADDRESS") or "local"


def storage() -> str | None:
    """Where checkpoints are kept: ``BATCHWRIGHT_STORAGE``, a folder or a URI; by default in the scratch folder."""
    return os.environ.get("BATCHWRIGHT_STORAGE") or None


def train_gpus(default: int) -> int:
    """GPUs per training process, 0 or 1: ``BATCHWRIGHT_TRAIN_GPUS`` or, if unset, ``default``."""
    gpus = _count("BATCHWRIGHT_TRAIN_GPUS", default)
    if gpus > 1:
        raise InputError(f"BATCHWRIGHT_TRAIN_GPUS={gpus}: each worker uses one GPU; raise {WORKERS} instead")
    return gpus


def tensorboard() -> Path | None:
    """The folder of TensorBoard's event files: ``BATCHWRIGHT_TENSORBOARD``; by default nobody writes any."""
    folder = os.environ.get("BATCHWRIGHT_TENSORBOARD")
    return Path(folder).resolve() if folder else None


def beam_is_asked() -> bool:
    """Whether ``BEAM_OPTIONS`` says how work is spread."""
    return bool(os.environ.get("BEAM_OPTIONS"))


def beam_options() -> list[str]:
    """Beam pipeline options: ``BEAM_OPTIONS``, by default the local in-process runner."""
    return os.environ.get("BEAM_OPTIONS", "--runner=FnApiRunner").split()


def _count(variable: str, default: int, least: int = 0) -> int:
    value = os.environ.get(variable, str(default))
    if not value.isdecimal() or int(value) < least:
        raise InputError(f"environment variable {variable}: expected an integer of at least {least}, found {value!r}")
    return int(value)
