"""Run the whole harness, two parts at a time, and print one table: ``python -m tests.faults``.

What each part says goes to ``.scratch/faults``.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

LOGS = Path(".scratch/faults")
LOST = {"lost", "differ", "left over", "does not go on"}
SILENT = {"not noticed", "not found"}
TRACEBACK = {"traceback", "crash", "hang", "too much memory", "no message", "not said"}


class Part(NamedTuple):
    """A command of the harness; the last line that it prints counts what it did, and faults by kind."""

    what: str
    command: str


PARTS = [  # the longest first
    Part("spoiled sources, judgements, given vectors, parameters", "fuzz readers 2700"),
    Part("`dvc repro`, all of it or one process killed", "kills 40"),
    Part("each stage killed", "stage_kills 8"),
    Part("training with two Ray workers, all of it or one process killed", "kills 8 2"),
    Part("the mend of a known fault undone", "mutants"),
    Part("each stage on a disk too small, then on a larger one", "disks 2"),
    Part("spoiled folders of models", "fuzz models 300"),
    Part("a flipped bit in each file of each artifact", "flips"),
    Part("2,000 domains at 1,024 open files", "descriptors"),
    Part("each stage where folders are disks of their own", "mounts"),
]


def main() -> int:
    """Print the table; return the number of faults."""
    LOGS.mkdir(parents=True, exist_ok=True)
    print("| what | command | how often | lost | silent | traceback |\n|---|---|--:|--:|--:|--:|", flush=True)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, PARTS))
    return sum(found)


def run(part: Part) -> int:
    """Run a part and print its row; return the number of faults."""
    file = LOGS / f"{re.sub('[^a-z0-9]+', '-', part.command).strip('-')}.log"
    with file.open("w") as log:
        command = [sys.executable, "-m", *f"tests.faults.{part.command}".split()]
        ended = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    counts = counted(file.read_text())
    faults = [total(counts, kinds) for kinds in (LOST, SILENT, TRACEBACK)]
    done = ", ".join(f"{count:,} {key}" for key, count in counts.items() if key not in LOST | SILENT | TRACEBACK)
    often = f"failed, see {file}" if ended or not done else done
    print(
        f"| {part.what} | `python -m tests.faults.{part.command}` | {often} |", *map("{} |".format, faults), flush=True
    )
    return sum(faults) + bool(ended or not done)


def counted(said: str) -> Counter[str]:
    """Read the counts that a part printed last, if it came to that."""
    found = said[max(said.rfind("{"), 0) :].partition("}")[0]
    return Counter({key: int(count) for key, count in re.findall(r"[\"']([^\"]+?)[\"']: (\d+)", found)})


def total(counts: Counter[str], kinds: Collection[str]) -> int:
    """Add up some kinds of faults."""
    return sum(counts[kind] for kind in kinds)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
