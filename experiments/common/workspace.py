"""A folder to run stages in, with its own parameters."""

import copy
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from batchwright.formats.pairs import domains, pairs_file, read_pairs
from stages.scoring.collection import Collection, held_out
from stages.scoring.params import HeldOutParams

ROOT = Path(__file__).parents[2]
ASKED = HeldOutParams(queries=2000, documents=10_000)

Row = dict[str, Any]
START = "models/start/model"


class Workspace:
    """Pairs of some domains of ``data``, or a share of each, with their vectors.

    ``training_pairs`` counts those in the training split. ``collections`` are ``home``, with the held-out queries of
    these domains, and ``elsewhere``, with those of all other domains, if there are any.
    """

    def __init__(
        self, folder: Path, data: Path, names: Sequence[str], share: float = 1.0, asked: HeldOutParams = ASKED
    ) -> None:
        self.folder = folder
        self.collections = {"home": held_out_of(folder / "home", data, names, asked)}
        if others := [name for name in domains(data / "pairs") if name not in names]:
            self.collections["elsewhere"] = held_out_of(folder / "elsewhere", data, others, asked)
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


def held_out_of(folder: Path, data: Path, names: Sequence[str], asked: HeldOutParams = ASKED) -> Collection:
    """Held-out queries of some domains of ``data``, whose pairs are copied to ``folder``."""
    _take(folder, data, names, 1.0)
    return held_out(folder, asked)


def _take(folder: Path, data: Path, names: Sequence[str], share: float) -> None:
    """Copy a share of each domain's pairs. They are sorted by hash, so the first ones are a random sample."""
    folder.mkdir(parents=True)
    for name in names:
        table = read_pairs(data / "pairs", name)
        pq.write_table(table.slice(0, round(share * len(table))), pairs_file(folder, name))
