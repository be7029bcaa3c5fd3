"""Execution settings, all environment variables: how and where a stage runs, never what it produces."""

import os
from pathlib import Path

from batchwright.core.errors import InputError


def scratch_root() -> Path:
    """Return ``BATCHWRIGHT_SCRATCH`` (default ``.scratch``, ignored by git and DVC)."""
    return Path(os.environ.get("BATCHWRIGHT_SCRATCH", ".scratch"))


def scratch(stage: str, fingerprint: str = "") -> Path:
    """Return a folder for a stage's work in ``scratch_root``, creating it if necessary.

    Its name is the fingerprint of everything that determines its content, so stale work is never reused. Without a
    fingerprint, return the folder of all the stage's work.
    """
    folder = scratch_root() / stage / fingerprint
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def workers() -> int:
    """Threads for a stage's own parallel loops: ``BATCHWRIGHT_WORKERS``, by default one per CPU."""
    return _count("BATCHWRIGHT_WORKERS", os.cpu_count() or 1, least=1)


def train_workers() -> int:
    """Ray Train workers: ``BATCHWRIGHT_TRAIN_WORKERS``; 0 (the default) trains in this process."""
    return _count("BATCHWRIGHT_TRAIN_WORKERS", 0)


def train_gpus(default: int) -> int:
    """GPUs per training process, 0 or 1: ``BATCHWRIGHT_TRAIN_GPUS`` or, if unset, ``default``."""
    gpus = _count("BATCHWRIGHT_TRAIN_GPUS", default)
    if gpus > 1:
        raise InputError(
            f"BATCHWRIGHT_TRAIN_GPUS={gpus}: each worker uses one GPU; raise BATCHWRIGHT_TRAIN_WORKERS instead"
        )
    return gpus


def tracker() -> str | None:
    """The experiment tracker that training reports to besides its curves: ``BATCHWRIGHT_TRACKER``; by default none."""
    return os.environ.get("BATCHWRIGHT_TRACKER") or None


def preflight() -> bool:
    """Whether stages check memory and disk before they begin: not with ``BATCHWRIGHT_PREFLIGHT=0``."""
    return os.environ.get("BATCHWRIGHT_PREFLIGHT") != "0"


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
