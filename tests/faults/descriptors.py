"""Make batches of 2,000 domains with 1,024 open files at most: ``python -m tests.faults.descriptors``."""

import resource
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.domains import plant_project
from benchmarks.scale import STAGES, run_stage

LIMIT = 1024


def main(domains: int = 2_000) -> Counter[str]:
    """Return how many stages were run, all of which did."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory() as name:
        plant_project(Path(name), domains, pairs=150, characters=200)
        for stage in STAGES:
            run_stage(Path(name), stage)
    return Counter(runs=len(STAGES))


if __name__ == "__main__":
    print(dict(main()))
