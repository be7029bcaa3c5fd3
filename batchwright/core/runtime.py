"""Execution knobs: how and where a stage runs, never what comes out. All are environment variables."""

import os
from pathlib import Path

from batchwright.core.errors import InputError


def scratch(stage: str, fingerprint: str) -> Path:
    """Folder for a stage's unfinished work, made if need be.

    It lies under ``BATCHWRIGHT_SCRATCH`` (default ``.scratch``, ignored by git and DVC), named by the
    fingerprint of all that decides its content, so that stale parts are never found.
    """
    folder = Path(os.environ.get("BATCHWRIGHT_SCRATCH", ".scratch")) / stage / fingerprint
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def workers() -> int:
    """Threads of a stage's own parallel loops: ``BATCHWRIGHT_WORKERS``, by default one a CPU."""
    return _count("BATCHWRIGHT_WORKERS", os.cpu_count() or 1, least=1)


def train_workers() -> int:
    """Ray Train workers: ``BATCHWRIGHT_TRAIN_WORKERS``; 0 (the default) trains in this process."""
    return _count("BATCHWRIGHT_TRAIN_WORKERS", 0)


def train_gpus(default: int) -> int:
    """GPUs a training process uses, 0 or 1: ``BATCHWRIGHT_TRAIN_GPUS``; ``default`` is what the machine offers."""
    gpus = _count("BATCHWRIGHT_TRAIN_GPUS", default)
    if gpus > 1:
        raise InputError(
            f"BATCHWRIGHT_TRAIN_GPUS={gpus}: a worker uses one GPU; raise BATCHWRIGHT_TRAIN_WORKERS instead"
        )
    return gpus


def beam_options() -> list[str]:
    """Beam pipeline options: ``BEAM_OPTIONS``, by default the local in-process runner."""
    return os.environ.get("BEAM_OPTIONS", "--runner=FnApiRunner").split()


def _count(variable: str, default: int, least: int = 0) -> int:
    value = os.environ.get(variable, str(default))
    if not value.isdecimal() or int(value) < least:
        raise InputError(f"environment variable {variable}: expected a number of {least} or more, found {value!r}")
    return int(value)
