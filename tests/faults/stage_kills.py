"""Kill single stages at random moments, run them again, and compare: ``python -m tests.faults.stage_kills ROUNDS``.

Every stage there is, each in a process group of its own that is killed as a whole.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.kills import compare
from tests.faults.victim import EVERY, OFTEN, STAGES, content, copy_code, environment, new_project, reproduce

EARLIEST = 0.3
"""Before this share of its time, a stage only imports."""


def main(rounds: int, seed: int = 0, stages: Sequence[str] = tuple(STAGES)) -> Counter[str]:
    """Return the number of kills, and of faults by kind."""
    rng, counts = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        code = copy_code(Path(name, "code"), *OFTEN)
        project = new_project(Path(name, "project"), code, pairs=600, params=EVERY)
        settings = environment(code)
        reproduce(project, settings)
        wanted = content(project)
        for stage in stages:
            began = time.monotonic()
            run(project, stage, settings, counts)
            length = time.monotonic() - began
            for _ in range(rounds):
                kill(project, stage, length * rng.uniform(EARLIEST, 1.0), settings, counts)
                run(project, stage, settings, counts)
                compare(content(project), wanted, counts)
            print(f"{stage}: {length:.1f} s; {dict(counts)}", flush=True)
    return counts


def run(project: Path, stage: str, settings: dict[str, str], counts: Counter[str]) -> None:
    """Run a stage to its end."""
    process = start(project, stage, settings)
    if process.wait():
        counts["does not go on"] += 1
        print(f"{stage}: {log(project).read_text()[-3000:]}", flush=True)


def kill(project: Path, stage: str, after: float, settings: dict[str, str], counts: Counter[str]) -> None:
    """Remove a stage's outputs as DVC does, and kill the stage after some seconds, if it still runs."""
    for output in STAGES[stage].split():
        path = project / output
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    process = start(project, stage, settings)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        counts["killed"] += 1
        process.wait()


def start(project: Path, stage: str, settings: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start a stage, whose messages go to ``log``."""
    command = [sys.executable, "-m", "project", "stage", *stage.split()]
    with log(project).open("wb") as said:
        return subprocess.Popen(command, cwd=project, env=settings, start_new_session=True, stdout=said, stderr=said)


def log(project: Path) -> Path:
    """The file that a stage's messages go to."""
    return project.with_suffix(".log")


if __name__ == "__main__":
    print(dict(main(*map(int, sys.argv[1:]))))
