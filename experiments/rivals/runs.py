"""Results of runs: a folder with one file for each, so that several processes can add to it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.fingerprint import fingerprint
from experiments.rivals.encoders import Kind
from experiments.rivals.training import Curve, Settings

Row = dict[str, str | int | float]


class Run(NamedTuple):
    """What distinguishes one run from another; runs of seed 0 choose ``settings``, on dev queries."""

    set: str
    arm: str
    kind: Kind
    epochs: int
    settings: Settings
    seed: int


@dataclass(frozen=True, kw_only=True)
class Result:
    """Mean nDCG@10 ``ndcg`` after ``steps``; the ``scores`` ``(Q,)`` float16 of all queries after the last; ``costs``
    and measures of the batches."""

    steps: NDArray[np.int64]
    ndcg: NDArray[np.float64]
    scores: NDArray[np.float16]
    costs: dict[str, float]


@dataclass(frozen=True)
class Runs:
    """The folder that holds them."""

    folder: Path

    def has(self, run: Run) -> bool:
        """Whether a run is there."""
        return self._file(run).exists()

    def add(self, run: Run, curve: Curve, costs: dict[str, float]) -> None:
        """Write a run's result."""
        arrays = {
            "steps": np.array(curve.steps),
            "ndcg": curve.scores.mean(axis=1, dtype=np.float64),
            "scores": curve.scores[-1].astype(np.float16),
        }
        about = json.dumps({"run": run, "costs": {**costs, "training_s": curve.seconds}})
        with atomic_file(self._file(run)) as temporary, temporary.open("wb") as handle:
            np.savez_compressed(handle, allow_pickle=False, about=np.array(about), **arrays)

    def read(self, run: Run) -> Result:
        """Read a run's result."""
        return _read(self._file(run))[1]

    def __iter__(self) -> Iterator[tuple[Run, Result]]:
        """All runs, in the order of their names, which is not that in which they were made."""
        return map(_read, sorted(self.folder.glob("*/*.npz")))

    def _file(self, run: Run) -> Path:
        return self.folder / run.set / f"{fingerprint(run)}.npz"


def _read(file: Path) -> tuple[Run, Result]:
    with np.load(file) as arrays:
        about = json.loads(str(arrays["about"]))
        result = Result(steps=arrays["steps"], ndcg=arrays["ndcg"], scores=arrays["scores"], costs=about["costs"])
    name, arm, kind, epochs, settings, seed = about["run"]
    return Run(name, arm, kind, epochs, Settings(*settings), seed), result
