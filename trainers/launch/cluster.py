"""The Ray cluster that trains: how to connect to it, what it must have, and how long it is waited for."""

import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Literal

import ray

from batchwright.core.errors import InputError
from batchwright.core.runtime import WORKERS, Workers, ray_address, train_gpus
from trainers.common.job import Job
from trainers.launch import RAY_CAME_FIRST

EVERY_SECONDS = 5.0
Nodes = Callable[[], Sequence[Mapping[str, Any]]]
"""``ray.nodes``."""
_QUIET = ray.LoggingConfig(log_level="ERROR")
"""For Ray's own processes: without a dashboard, one of them complains every second."""


@contextmanager
def connected() -> Iterator[None]:
    """Connect to the cluster at ``RAY_ADDRESS``, or start one for the length of the block; keep one that is in use.

    Raises:
        InputError: the cluster does not answer.
    """
    if ray.is_initialized():
        yield
        return
    address = ray_address()
    if address == "local":
        if RAY_CAME_FIRST:
            print(
                "warning: Ray was imported before trainers.launch, so it may listen on all networks of this machine; "
                "import trainers.launch first",
                file=sys.stderr,
            )
        os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        # Other users of this machine reach them. Ray asks for a token by itself (it looked at RAY_AUTH_MODE when it
        # was imported), and nobody else knows this one.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        more = {"include_dashboard": False} if address == "local" else {}
        terminate = signal.getsignal(signal.SIGTERM)
        ray.init(address=address, logging_level="ERROR", logging_config=_QUIET, **more)
        signal.signal(signal.SIGTERM, terminate)  # Ray's own ends the process at once, by another signal
        yield
    except ConnectionError as error:
        raise InputError(f"RAY_ADDRESS={address}: no cluster answers there ({error})") from None
    finally:
        ray.shutdown()


def workers_device() -> Literal["cpu", "cuda"]:
    """Return the device of workers: the machine that begins a training may be one without GPUs."""
    return "cuda" if train_gpus(int(ray.cluster_resources().get("GPU", 0) > 0)) else "cpu"


def wanted(job: Job, workers: int) -> dict[str, float]:
    """Return what so many workers need of a cluster."""
    return {"CPU": workers, "GPU": workers * (job.device == "cuda")}


def check_resources(job: Job, workers: Workers) -> None:
    """Check that the cluster has room for the fewest workers.

    Raises:
        InputError: it has not.
    """
    available = ray.cluster_resources()
    for kind, count in wanted(job, workers.fewest).items():
        if count > available.get(kind, 0):
            raise InputError(
                f"{WORKERS}={workers}: needs {count} {kind}s, the cluster has {available.get(kind, 0):g}; lower it, "
                "or name a larger cluster with RAY_ADDRESS"
            )


@contextmanager
def telling_of_losses(nodes: Nodes, wanted: Mapping[str, float]) -> Iterator[None]:
    """During the block, print a warning for each machine that is lost; ``wanted`` are the resources of the training."""
    stop = Event()
    watching = Thread(target=_watch, args=(nodes, wanted, stop), daemon=True)
    watching.start()
    try:
        yield
    finally:
        stop.set()
        watching.join()


def _watch(nodes: Nodes, wanted: Mapping[str, float], stop: Event) -> None:
    alive: set[str] = set()
    while True:
        try:
            now = nodes()
        except Exception:  # the cluster does not answer just now; Ray itself says so if it lasts
            now = []
        for node in now:
            if not node["Alive"] and node["NodeID"] in alive:
                print(f"warning: {loss(node, now, wanted)}", file=sys.stderr, flush=True)
        alive = {node["NodeID"] for node in now if node["Alive"]} or alive
        if stop.wait(EVERY_SECONDS):
            return


def loss(lost: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], wanted: Mapping[str, float]) -> str:
    """Say which machine was lost, and whether the others have the resources ``wanted``."""
    left = {kind: sum(node["Resources"].get(kind, 0) for node in nodes if node["Alive"]) for kind in wanted}
    short = {kind: count for kind, count in wanted.items() if left[kind] < count}
    missing = " and ".join(f"{count:g} {kind}s ({left[kind]:g} are left)" for kind, count in short.items())
    then = f"training needs {missing} and waits for another" if missing else "training goes on without it"
    return f"the Ray cluster lost the machine {lost['NodeManagerAddress']}; {then}"
