"""Trains short trials of a run, in this process or as tasks of Ray: one at a time, since each depends on the last."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import ray

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.core.runtime import Workers, train_workers
from trainers.common.job import TrainJob
from trainers.common.step_loop import DivergedError
from trainers.launch.cluster import check_resources, connected, workers_device
from trainers.variants import train

Scores = Mapping[str, float]
"""A trained model's score on each query."""
Measure = Callable[[Path], Scores]
"""Scores the model in a folder; it travels to the processes by pickle."""
RESTARTS = 2


@contextmanager
def trial_runner(measure: Measure) -> Iterator[Callable[[TrainJob], Scores]]:
    """Yield a function that trains a job and returns what its model scores; nothing if its loss was not finite.

    ``BATCHWRIGHT_TRAIN_WORKERS`` says whether Ray trains them; 0 trains them in this process. What a killed stage has
    finished is not trained again.

    Raises:
        InputError: the cluster is too small or does not answer, or a trial failed on every attempt.
    """
    on_cluster = train_workers().most > 0

    def run(job: TrainJob) -> Scores:
        if not _result(job).exists():
            (_on_cluster if on_cluster else _try)(job, measure)
        scores: Scores = read_json(_result(job), made_by="tune")
        return scores

    with connected() if on_cluster else nullcontext():
        yield run


def _result(job: TrainJob) -> Path:
    return job.scratch / "scores.json"


def _try(job: TrainJob, measure: Measure) -> None:
    """Train one trial, and keep the scores alone."""
    job.scratch.mkdir(parents=True, exist_ok=True)
    try:
        train(job)
        scores = measure(job.model)
    except DivergedError:
        scores = {}
    write_json(_result(job), scores)
    for folder in (job.model, *([job.storage.local] if job.storage.local else [])):
        shutil.rmtree(folder, ignore_errors=True)


def _on_cluster(job: TrainJob, measure: Measure) -> None:
    """Train on a worker; Ray keeps its process for the next trial."""
    device = workers_device()
    check_resources(replace(job, device=device), Workers(1, 1))
    task = ray.remote(num_cpus=1, num_gpus=int(device == "cuda"), max_retries=RESTARTS)(_try)
    try:
        ray.get(task.remote(replace(job, device=device), measure))
    except ray.exceptions.RayTaskError as error:
        raise InputError(f"a trial failed: {error.cause}") from error
    except ray.exceptions.RayError as error:
        raise InputError(f"a trial failed {RESTARTS + 1} times, the last time with: {error}") from None
