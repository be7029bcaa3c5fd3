"""Trains short trials of a run, each in one process: in this one, or several at a time as tasks of Ray."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
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
def trial_runner(measure: Measure) -> Iterator[Callable[[Sequence[TrainJob]], list[Scores]]]:
    """Yield a function that trains jobs and returns what each model scores; nothing if its loss was not finite.

    ``BATCHWRIGHT_TRAIN_WORKERS`` says how many train at a time; 0 trains them in this process, one after the other.
    Each is as if it were the only one. What a killed stage has finished is not trained again.

    Raises:
        InputError: the cluster is too small or does not answer, or a trial failed on every attempt.
    """
    workers = train_workers()

    def run(jobs: Sequence[TrainJob]) -> list[Scores]:
        waiting = [job for job in jobs if not _result(job).exists()]
        if workers.most and waiting:
            _on_cluster(waiting, measure, workers)
        for job in [] if workers.most else waiting:
            _try(job, measure)
        return [read_json(_result(job), made_by="tune") for job in jobs]

    with connected() if workers.most else nullcontext():
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


def _on_cluster(jobs: Sequence[TrainJob], measure: Measure, workers: Workers) -> None:
    """Train on as many workers at a time as are asked for; Ray keeps their processes for the next trials."""
    device = workers_device()
    check_resources(replace(jobs[0], device=device), Workers(1, 1))
    task = ray.remote(num_cpus=1, num_gpus=int(device == "cuda"), max_retries=RESTARTS)(_try)
    try:
        for start in range(0, len(jobs), workers.most):
            now = jobs[start : start + workers.most]
            ray.get([task.remote(replace(job, device=device), measure) for job in now])
    except ray.exceptions.RayTaskError as error:
        raise InputError(f"a trial failed: {error.cause}") from error
    except ray.exceptions.RayError as error:
        raise InputError(f"a trial failed {RESTARTS + 1} times, the last time with: {error}") from None
