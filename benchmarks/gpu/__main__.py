"""The command ``python -m benchmarks.gpu``."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from batchwright.core.command import new_parser
from benchmarks.gpu.corpus import FULL, SMALL, Form
from benchmarks.gpu.measure import Result, Table, card, matrix
from benchmarks.gpu.steps import scores, steps, ways
from benchmarks.gpu.training import curves
from trainers.common.job import training_device

ABOUT = """Measures training on a GPU and writes a table after every result: losses in float32 and bfloat16, the matrix
rate, steps of the biencoder and of CDE beside sentence-transformers, ways to make them faster, and XTR's scores."""
PARTS = ("curves", "matrix", "steps", "ways", "scores")


def main() -> None:
    """Measure one thing after the other, until the time is up."""
    parser = new_parser("benchmarks.gpu", ABOUT, "python -m benchmarks.gpu --output gpu.tsv")
    parser.add_argument("--output", type=Path, default=Path("gpu.tsv"))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure; by default all")
    parser.add_argument("--shards", type=Path, help="shards to train on; by default generated ones")
    parser.add_argument("--start", type=Path, help="the model to train from; by default a BERT with random weights")
    parser.add_argument("--minutes", type=float, default=9, help="begin nothing after so many")
    parser.add_argument("--small", action="store_true", help="tiny sizes, which run on a CPU")
    arguments = parser.parse_args()
    if training_device() == "cpu" and not arguments.small:
        raise SystemExit("gpu: error: there is no GPU; add --small to see on the CPU that everything runs")
    table, end = Table(arguments.output, card()), time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        for result in _results(arguments.parts, SMALL if arguments.small else FULL, Path(folder), arguments):
            table.add(result)
            if time.monotonic() > end:
                print(f"stopped after {arguments.minutes:g} minutes", file=sys.stderr)
                return


def _results(parts: Sequence[str], form: Form, folder: Path, arguments: argparse.Namespace) -> Iterator[Result]:
    measure = {
        "curves": partial(curves, form, folder, arguments.shards, arguments.start),
        "matrix": partial(matrix, form),
        "steps": partial(steps, form, folder),
        "ways": partial(ways, form, folder),
        "scores": partial(scores, form),
    }
    for part in parts:
        yield from measure[part]()


if __name__ == "__main__":
    main()
