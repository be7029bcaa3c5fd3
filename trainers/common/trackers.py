"""Experiment trackers, which show trainings while they run: TensorBoard, Weights & Biases and MLflow."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from batchwright.core import runtime
from batchwright.core.errors import InputError
from batchwright.core.messages import hint
from trainers.common.job import Job

PROJECT = "batchwright"


class Tracker(Protocol):
    """One run of a tracker; it opens when it is made."""

    def log(self, step: int, measures: Mapping[str, float]) -> None:
        """Add the measures of a step."""

    def close(self) -> None:
        """End the run."""


class TensorBoard:
    """Event files in ``tensorboard`` in the scratch folder."""

    def __init__(self, job: Job) -> None:
        from tensorboardX import SummaryWriter

        folder = job.scratch.parents[1] / "tensorboard" / run_name(job)
        shutil.rmtree(folder, ignore_errors=True)  # a resumed run logs its first rows again
        self._writer = SummaryWriter(str(folder))

    def log(self, step: int, measures: Mapping[str, float]) -> None:
        """See ``Tracker``."""
        for name, value in measures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """See ``Tracker``."""
        self._writer.close()


class WandB:
    """A run of Weights & Biases; a resumed training goes on with it."""

    def __init__(self, job: Job) -> None:
        import wandb

        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=job.name,
            id=run_name(job),
            resume="allow",
            config=job.settings,
            dir=str(job.scratch.parents[1]),
        )

    def log(self, step: int, measures: Mapping[str, float]) -> None:
        """See ``Tracker``."""
        self._run.log(dict(measures), step=step)

    def close(self) -> None:
        """See ``Tracker``."""
        self._run.finish()


class MLflow:
    """A run of MLflow, on the server that ``MLFLOW_TRACKING_URI`` names."""

    def __init__(self, job: Job) -> None:
        import mlflow

        self._mlflow: Any = mlflow
        mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
        mlflow.start_run(run_name=run_name(job))
        mlflow.log_params(job.settings)

    def log(self, step: int, measures: Mapping[str, float]) -> None:
        """See ``Tracker``."""
        self._mlflow.log_metrics(dict(measures), step=step, synchronous=False)

    def close(self) -> None:
        """See ``Tracker``."""
        self._mlflow.end_run()


TRACKERS: dict[str, tuple[Callable[[Job], Tracker], str]] = {
    "tensorboard": (TensorBoard, "tensorboardX"),
    "wandb": (WandB, "wandb"),
    "mlflow": (MLflow, "mlflow"),
}
"""What opens a run, and the module that it needs, by the tracker's name."""


def chosen_tracker() -> str | None:
    """Return the tracker's name, or None if there is to be none.

    Raises:
        InputError: there is no such tracker, or its package is missing.
    """
    name = runtime.tracker()
    if name is None:
        return None
    if name not in TRACKERS:
        raise InputError(f"environment variable BATCHWRIGHT_TRACKER: unknown tracker '{name}'{hint(name, TRACKERS)}")
    module = TRACKERS[name][1]
    if importlib.util.find_spec(module) is None:
        raise InputError(f"BATCHWRIGHT_TRACKER={name}: the package is missing; pip install {module}")
    return name


def open_tracker(job: Job) -> Tracker | None:
    """Open a run of the job's tracker, if it has one.

    Raises:
        InputError: the tracker refuses; its own settings are in its own environment variables.
    """
    if job.tracker is None:
        return None
    try:
        return TRACKERS[job.tracker][0](job)
    except Exception as error:  # each has exceptions of its own
        raise InputError(f"BATCHWRIGHT_TRACKER={job.tracker}: {error}") from None


def run_name(job: Job) -> str:
    """The name of the job and of everything that decides its result, such as ``static-0a1b2c3d``."""
    return f"{job.name}-{job.scratch.name[:8]}"
