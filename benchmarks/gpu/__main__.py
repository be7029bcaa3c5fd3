"""The command ``python -m benchmarks.gpu``."""

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import trainers
from batchwright.core.command import new_parser
from benchmarks.gpu.corpus import FULL, SMALL, Form
from benchmarks.gpu.curves import curves
from benchmarks.gpu.launched import launched
from benchmarks.gpu.lengths import KEPT, Lengths
from benchmarks.gpu.machine import why
from benchmarks.gpu.measure import Table, Task, card
from benchmarks.gpu.profiles import Profiles
from benchmarks.gpu.scores import scores
from benchmarks.gpu.steps import settings, steps
from trainers.common.job import training_device

ABOUT = """Measures training on a GPU and writes a table after every result: what the machine can do, where the time of
a step goes, steps beside those of sentence-transformers, losses in float32 and bfloat16, XTR's scores, and a training
that Ray launches."""
PARTS = ("why", "profile", "steps", "curves", "scores", "ray")


def main() -> None:
    """Measure one thing after the other, until the time is up."""
    parser = new_parser("benchmarks.gpu", ABOUT, "python -m benchmarks.gpu --output gpu.tsv")
    parser.add_argument("--output", type=Path, default=Path("gpu.tsv"), help="profiles go to a file beside it")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS[:-1], help="what to measure; by default all but ray"
    )
    names = [setting.name for setting in settings(FULL)]
    parser.add_argument("--settings", nargs="+", choices=names, metavar="NAME", help=f"of steps and profile: {names}")
    parser.add_argument("--contenders", nargs="+", metavar="NAME", help="of steps and profile; by default all")
    parser.add_argument("--lengths", type=Path, default=KEPT, help="of python -m benchmarks.gpu.lengths")
    parser.add_argument("--commit", default="", help="of the code, to be written into the table")
    parser.add_argument("--shards", type=Path, help="shards for curves; by default generated ones")
    parser.add_argument("--start", type=Path, help="the model for curves; by default a BERT with random weights")
    parser.add_argument("--minutes", type=float, default=9, help="begin nothing after so many")
    parser.add_argument("--small", action="store_true", help="tiny sizes, which run on a CPU")
    arguments = parser.parse_args()
    if training_device() == "cpu" and not arguments.small:
        raise SystemExit("gpu: error: there is no GPU; add --small to see on the CPU that everything runs")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads what trainings set in its first product
    print(f"gpu: trainers are those of {Path(trainers.__path__[0])}", file=sys.stderr)
    gc.freeze()  # each model that goes is collected, without a look at all that was imported
    table, end = Table(arguments.output, card(), arguments.commit), time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        for task in _tasks(SMALL if arguments.small else FULL, Path(folder), arguments):
            for result in task.results():
                table.add(result)
            if time.monotonic() > end:
                print(f"stopped after {arguments.minutes:g} minutes", file=sys.stderr)
                return


def _tasks(form: Form, folder: Path, arguments: argparse.Namespace) -> Iterator[Task]:
    lengths = Lengths.read(arguments.lengths)
    profile = arguments.output.with_name(f"{arguments.output.stem}-profile.tsv")
    for part in arguments.parts:
        match part:
            case "why":
                yield from why(form)
            case "profile":
                yield from Profiles(form, folder, lengths, profile).tasks(arguments.settings, arguments.contenders)
            case "steps":
                yield from steps(form, folder, lengths, arguments.settings, arguments.contenders)
            case "curves":
                yield from curves(form, folder, arguments.shards, arguments.start)
            case "scores":
                yield from scores(form)
            case "ray":
                yield from launched(form, folder)


if __name__ == "__main__":
    main()
