"""Runs a training job with Ray Train, in this process or on a cluster."""

import logging
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

import ray
from ray.train import (
    Checkpoint,
    CheckpointUploadMode,
    FailureConfig,
    LoggingConfig,
    RunConfig,
    ScalingConfig,
)
from ray.train.torch import TorchTrainer
from torch import distributed as dist

from batchwright.core.errors import DISK_IS_FULL, InputError, disk_is_full
from batchwright.core.runtime import WORKERS, Workers, ray_address, train_workers
from batchwright.core.storage import Storage
from trainers.common.distributed import rank
from trainers.common.job import Job
from trainers.launch.cluster import (
    check_resources,
    connected,
    telling_of_losses,
    wanted,
    workers_device,
)
from trainers.launch.patience import Patience, waited_in_vain

RESTARTS = 2
PATIENCE = 600
"""For how many seconds a training waits for machines."""

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
    job = replace(job, report=_report)
    if workers.most == 0:
        if ray_address() != "local":
            print(f"warning: RAY_ADDRESS is ignored: {WORKERS} is 0, so this process trains", file=sys.stderr)
        _fit(job, work, workers)
    else:
        _fit_on_cluster(job, work, _that_a_batch_feeds(workers, job))
    job.storage.delete()
    shutil.rmtree(job.scratch, ignore_errors=True)


def _fit_on_cluster(job: J, work: Callable[[J], None], workers: Workers) -> None:
    job.storage.remove(_RAYS_LIST, *_messages(job))
    try:
        with connected():
            job = replace(job, device=workers_device())
            check_resources(job, workers)
            with telling_of_losses(ray.nodes, wanted(job, workers.fewest)):
                _fit(job, work, workers)
    except ray.train.TrainingFailedError as error:
        _raise_message(job)
        if waited_in_vain(error):
            raise InputError(
                f"{workers} workers could not be started within {PATIENCE // 60} minutes; see ray status, bring "
                f"machines back or lower {WORKERS}, and run it again to go on"
            ) from None
        if disk_is_full(error):
            raise InputError(DISK_IS_FULL) from None
        raise InputError(f"training failed {RESTARTS + 1} times, the last time with: {error}") from None
    _raise_message(job)


_RAYS_LIST = "checkpoint_manager_snapshot.json"
"""Ray's own list of checkpoints, which it refuses to begin with if one of them is gone. We go by what is there."""


class _Trainer(TorchTrainer):  # type: ignore[misc]
    """Leaves interrupts to the command that trains; after one, Ray's own handler can end it with 0."""

    def _register_sigint_handler(self, controller: object) -> None:
        """See Ray's class."""


def _fit(job: J, work: Callable[[J], None], workers: Workers) -> None:
    gpus = int(job.device == "cuda")
    folder, _, name = job.storage.path.rpartition("/")
    _Trainer(
        # Ray's controller would read a train_loop_config, too, and import for seconds what is in it.
        partial(work, job) if workers.most == 0 else partial(_train_on_worker, job, work),
        scaling_config=ScalingConfig(
            num_workers=tuple(workers) if workers.fewest < workers.most else workers.most,
            use_gpu=bool(gpus),
            resources_per_worker={"CPU": 1, "GPU": gpus},
        ),
        run_config=RunConfig(
            name=name,
            storage_path=folder,
            storage_filesystem=job.storage.filesystem,
            failure_config=FailureConfig(max_failures=RESTARTS, controller_failure_limit=-1),
            callbacks=[Patience(PATIENCE)],
            logging_config=LoggingConfig(log_level="ERROR"),
        ),
    ).fit()


def _report(row: Mapping[str, float | int], checkpoint: Storage | None) -> None:
    """Tell Ray Train of a step and of its checkpoint, which is in Ray's storage already."""
    written = Checkpoint(checkpoint.path, checkpoint.filesystem) if checkpoint else None
    ray.train.report(dict(row), checkpoint=written, checkpoint_upload_mode=CheckpointUploadMode.NO_UPLOAD)


def _train_on_worker(job: J, work: Callable[[J], None]) -> None:
    """Train. Leave the message of an InputError for ``launch``: if it were raised, Ray would print it and retry."""
    for name in ("", "sentence_transformers"):
        logging.getLogger(name).setLevel(logging.ERROR)
    if not job.scratch.is_dir():
        raise FileNotFoundError(
            f"machine {platform.node()} does not see {job.scratch}; all machines must share the scratch and "
            "the project's folder, see docs/scale.md"
        )
    try:
        work(job)
    except InputError as error:
        with job.storage.publish(f"{_MESSAGE}{rank()}") as folder:
            (folder / _TEXT).write_text(str(error), encoding="utf-8")
        dist.destroy_process_group()  # or the ranks that did not fail would wait for this one


_MESSAGE, _TEXT = "error-of-rank-", "message.txt"


def _messages(job: Job) -> list[str]:
    return [name for name in job.storage.names() if name.startswith(_MESSAGE)]


def _raise_message(job: Job) -> None:
    for name in _messages(job):
        with job.storage.fetch(name) as folder:
            raise InputError((folder / _TEXT).read_text(encoding="utf-8"))


def _that_a_batch_feeds(workers: Workers, job: Job) -> Workers:
    if workers.fewest > job.batch_size:
        raise InputError(
            f"{WORKERS}={workers}: a batch has only {job.batch_size} rows; lower it to {job.batch_size} at most"
        )
    return Workers(workers.fewest, min(workers.most, job.batch_size))
