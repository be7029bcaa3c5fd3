"""Tells when a Ray cluster loses a machine, while a training runs or waits for another one."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

EVERY_SECONDS = 5.0

Nodes = Callable[[], Sequence[Mapping[str, Any]]]
"""``ray.nodes``."""


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
