"""A job without a model, whose workers import next to nothing; processes of a cluster take seconds to import more."""

import os
import time
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.storage import Storage
from trainers.common.job import Job


def job(folder: Path) -> Job:
    """Everything is in ``folder``."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return Job(
        name="biencoder",
        seed=0,
        batch_size=2,
        model=folder / "model",
        scratch=scratch,
        storage=Storage.at(scratch) / "biencoder",
        device="cpu",
    )


def begin(work: Job) -> None:
    """Say that a worker has begun, and go on for ever."""
    (work.model.parent / f"{os.getpid()}.begun").touch()
    time.sleep(600)


def refuse(work: Job) -> None:
    """Fail in every worker."""
    raise InputError(f"{work.name}: the loss is nan")
