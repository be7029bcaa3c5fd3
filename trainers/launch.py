"""Runs a training job with Ray Train. No other module of this package imports Ray."""

import logging
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import ray
from ray.train import ControllerError, FailureConfig, LoggingConfig, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchTrainer
from torch import distributed as dist

from batchwright.core.errors import DISK_IS_FULL, InputError, disk_is_full
from batchwright.core.runtime import train_workers
from trainers.common.job import Job
from trainers.common.lost_machines import telling_of_losses

RESTARTS = 2
WAITS = 10
"""How many times in a run Ray Train waits a minute for machines that are not there."""

J = TypeVar("J", bound=Job)


def launch(job: J, work: Callable[[J], None]) -> None:
    """Run ``work`` on as many workers as ``BATCHWRIGHT_TRAIN_WORKERS`` says; 0 runs it in this process.

    ``work`` must be a module-level function.

    Raises:
        InputError: the batch or the cluster is too small for that many workers, the cluster does not answer, a worker
            raised an InputError, or training failed on every attempt.
    """
    workers = train_workers()
    logging.getLogger("ray.train").setLevel(logging.ERROR)
    if workers == 0:
        _fit(job, work, workers)
    else:
        _check_batch(job, workers)
        _fit_on_cluster(job, work, workers)
    shutil.rmtree(job.scratch, ignore_errors=True)


_QUIET = ray.LoggingConfig(log_level="ERROR")
"""For Ray's own processes: without a dashboard, one of them complains every second."""
_LOOPBACK = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
"""A cluster of our own is for this machine. Some of Ray's parts listen on all addresses nevertheless, so it asks for a
token, which only its own processes know. Ray does so by itself: ``RAY_AUTH_MODE`` is read when Ray is imported."""


def _fit_on_cluster(job: J, work: Callable[[J], None], workers: int) -> None:
    address = os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ours = not ray.is_initialized()
    try:
        if ours:
            ray.init(
                address=address,
                logging_level="ERROR",
                logging_config=_QUIET,
                **(_LOOPBACK if address == "local" else {}),
            )
        _check_resources(job, workers)
        _message_file(job).unlink(missing_ok=True)
        with telling_of_losses(ray.nodes, _wanted(job, workers)):
            _fit(job, work, workers)
    except ConnectionError as error:
        raise InputError(f"RAY_ADDRESS={address}: no cluster answers there ({error})") from None
    except TrainingFailedError as error:
        _raise_message(job)
        if _waited_in_vain(error):
            raise InputError(
                f"{workers} workers could not be started within {WAITS} minutes; see ray status, bring machines back "
                "or lower BATCHWRIGHT_TRAIN_WORKERS, and run it again to go on"
            ) from None
        if disk_is_full(error):
            raise InputError(DISK_IS_FULL) from None
        raise InputError(f"training failed {RESTARTS + 1} times, the last time with: {error}") from None
    finally:
        if ours:
            ray.shutdown()
    _raise_message(job)


def _fit(job: J, work: Callable[[J], None], workers: int) -> None:
    gpus = int(job.device == "cuda")
    TorchTrainer(
        _train if workers == 0 else _train_on_worker,
        train_loop_config={"job": job, "work": work},
        scaling_config=ScalingConfig(
            num_workers=workers, use_gpu=bool(gpus), resources_per_worker={"CPU": 1, "GPU": gpus}
        ),
        run_config=RunConfig(
            name=f"{job.name}-{job.scratch.name}",
            storage_path=str(job.scratch),
            failure_config=FailureConfig(max_failures=RESTARTS, controller_failure_limit=WAITS - 1),
            logging_config=LoggingConfig(log_level="ERROR"),
        ),
    ).fit()


def _train(config: dict[str, Any]) -> None:
    config["work"](config["job"])


def _train_on_worker(config: dict[str, Any]) -> None:
    """Train. Leave the message of an InputError for ``launch``: if it were raised, Ray would print it and retry."""
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    try:
        _train(config)
    except InputError as error:
        _message_file(config["job"]).write_text(str(error), encoding="utf-8")
        dist.destroy_process_group()  # or the ranks that did not fail would wait for this one


def _message_file(job: Job) -> Path:
    return job.scratch / "error.txt"


def _raise_message(job: Job) -> None:
    file = _message_file(job)
    if file.exists():
        raise InputError(file.read_text(encoding="utf-8"))


def _check_batch(job: Job, workers: int) -> None:
    if workers > job.batch_size:
        raise InputError(
            f"BATCHWRIGHT_TRAIN_WORKERS={workers}: a batch has only {job.batch_size} rows; lower it to "
            f"{job.batch_size} at most"
        )


def _waited_in_vain(error: TrainingFailedError) -> bool:
    # Ray's class for it is private.
    return isinstance(error, ControllerError) and "StartupTimeout" in type(error.controller_failure).__name__


def _wanted(job: Job, workers: int) -> dict[str, float]:
    return {"CPU": workers, "GPU": workers * (job.device == "cuda")}


def _check_resources(job: Job, workers: int) -> None:
    available = ray.cluster_resources()
    for kind, count in _wanted(job, workers).items():
        if count > available.get(kind, 0):
            raise InputError(
                f"BATCHWRIGHT_TRAIN_WORKERS={workers}: needs {count} {kind}s, the cluster has "
                f"{available.get(kind, 0):g}; lower it, or name a larger cluster with RAY_ADDRESS"
            )
