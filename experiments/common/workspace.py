"""A folder to run stages in, with its own parameters, and the arguments of experiments that do."""

import argparse
import copy
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from batchwright.core.command import new_parser
from batchwright.formats.pairs import pairs_file, read_pairs
from stages.scoring.collection import HeldOutParams, held_out

ROOT = Path(__file__).parents[2]
SIZES = HeldOutParams(queries=2000, documents=10_000, training_documents=True)

Row = dict[str, Any]
START = "models/start/model"


def training_parser(program: str, about: str, example: str) -> argparse.ArgumentParser:
    """A parser for experiments that train on some domains of a data folder, once per seed, and write a table."""
    parser = new_parser(program, about, example)
    parser.add_argument("data", type=Path)
    parser.add_argument("--domains", nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    return parser


class Workspace:
    """Pairs of some domains of ``data``, or a share of each, with their vectors.

    ``training_pairs`` counts those in the training split; ``held_out`` are the held-out queries of all pairs of these
    domains.
    """

    def __init__(
        self, folder: Path, data: Path, names: Sequence[str], share: float = 1.0, sizes: HeldOutParams = SIZES
    ) -> None:
        self.folder = folder
        _take(folder / "held_out", data, names, 1.0)
        self.held_out = held_out(folder / "held_out", sizes)
        _take(folder / "data/pairs", data, names, share)
        self.training_pairs = sum(len(read_pairs(folder / "data/pairs", name, "train")) for name in names)
        (folder / "data/vectors").symlink_to((data / "vectors").resolve())
        self._params: dict[str, Any] = {}
        self._filtered: Any = None

    def set_params(self, base: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
        """Write ``params.yaml``: ``base``, overridden by the dotted keys in ``changes``."""
        self._params = copy.deepcopy(dict(base))
        for key, value in changes.items():
            *groups, last = key.split(".")
            place = self._params
            for group in groups:
                place = place.setdefault(group, {})
            place[last] = copy.deepcopy(value)  # values may be part of ``base``
        self._write_params()

    def train(self, variant: str, batches: str) -> Path:
        """Train ``variant`` from ``START`` on ``batches`` with the present parameters; returns the model's folder.

        The curve and the metrics are in ``results/train/trained.{tsv,json}``.
        """
        self._params["runs"] = {"trained": {"variant": variant, "batches": batches, "start": START}}
        self._write_params()
        self.run("train trained")
        return self.folder / "models/trained"

    def filter(self) -> None:
        """Run the stage ``filter`` if its parameters have changed since the last time."""
        if self._params["filter"] != self._filtered:
            self.run("filter")
        self._filtered = copy.deepcopy(self._params["filter"])

    def run(self, command: str) -> None:
        """Run ``python -m stages COMMAND``; if it fails, exit with its message."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
        arguments = [sys.executable, "-m", "stages", *command.split()]
        done = subprocess.run(arguments, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr.strip().splitlines()[-1])

    def _write_params(self) -> None:
        (self.folder / "params.yaml").write_text(yaml.safe_dump(self._params), encoding="utf-8")


def _take(folder: Path, data: Path, names: Sequence[str], share: float) -> None:
    """Copy a share of each domain's pairs. They are sorted by hash, so the first ones are a random sample."""
    folder.mkdir(parents=True)
    for name in names:
        table = read_pairs(data / "pairs", name)
        pq.write_table(table.slice(0, round(share * len(table))), pairs_file(folder, name))
