"""Times of stages: how long each one took when it last ran, in the scratch folder, never in an artifact."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from batchwright.core.runtime import scratch_root

_FILE = "times.jsonl"


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Record how long the block took, if it succeeds, as the time of ``stage``."""
    start = time.monotonic()
    yield
    line = json.dumps({"stage": stage, "seconds": round(time.monotonic() - start, 2)})
    file = scratch_root() / _FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as handle:  # one write: stages may end at the same time
        handle.write(line + "\n")


def read_times() -> dict[str, float]:
    """Return the seconds of each stage's last finished run, in the order in which they ended; none without a record."""
    file = scratch_root() / _FILE
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found: dict[str, float] = {}
    for row in map(json.loads, lines):
        found.pop(row["stage"], None)
        found[row["stage"]] = row["seconds"]
    return found
