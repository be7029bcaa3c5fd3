"""Results of runs: a folder with curves, costs and the scores of single queries."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.files import read_tsv, write_tsv
from experiments.rivals.training import Curve

Row = dict[str, str | int | float]


class Run(NamedTuple):
    """What distinguishes one run from another."""

    set: str
    arm: str
    kind: str
    epochs: int
    seed: int

    @property
    def key(self) -> str:
        """The name of its scores in the set's file."""
        return "|".join(map(str, self[1:]))


@dataclass(frozen=True, kw_only=True)
class Runs:
    """``curves`` has a row per run and point, ``costs`` a row per run, ``scores`` ``(Q,)`` float16 of each run."""

    folder: Path
    curves: list[Row]
    costs: list[Row]
    scores: dict[str, dict[str, NDArray[np.float16]]]

    @classmethod
    def open(cls, folder: Path) -> "Runs":
        """Read what is there; an absent folder has no runs."""
        if not (folder / "curves.tsv").exists():
            return cls(folder=folder, curves=[], costs=[], scores={})
        tables = [read_tsv(folder / f"{name}.tsv", made_by="experiments.rivals") for name in ("curves", "costs")]
        scores = {file.stem: dict(np.load(file)) for file in sorted(folder.glob("*.npz"))}
        return cls(folder=folder, curves=_typed(tables[0]), costs=_typed(tables[1]), scores=scores)

    def has(self, run: Run) -> bool:
        """Whether a run is there."""
        return run.key in self.scores.get(run.set, {})

    def add(self, run: Run, curve: Curve, costs: dict[str, float]) -> None:
        """Add a run, and write everything."""
        points = zip(curve.steps, curve.scores.mean(axis=1).tolist(), curve.losses, strict=True)
        self.curves.extend({**run._asdict(), "step": step, "ndcg": ndcg, "loss": loss} for step, ndcg, loss in points)
        self.costs.append({**run._asdict(), **costs})
        self.scores.setdefault(run.set, {})[run.key] = curve.scores[-1].astype(np.float16)
        write_tsv(self.folder / "curves.tsv", self.curves)
        write_tsv(self.folder / "costs.tsv", self.costs)
        with atomic_file(self.folder / f"{run.set}.npz") as temporary, temporary.open("wb") as handle:
            np.savez_compressed(handle, allow_pickle=False, **self.scores[run.set])

    def curve(self, run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps and nDCG@10 of a run."""
        points = [row for row in self.curves if Run(*(row[name] for name in Run._fields)) == run]  # type: ignore[arg-type]
        return np.array([row["step"] for row in points], float), np.array([row["ndcg"] for row in points], float)


def _typed(rows: list[dict[str, str]]) -> list[Row]:
    texts, whole = ("set", "arm", "kind"), ("epochs", "seed", "step")
    return [
        {name: value if name in texts else int(value) if name in whole else float(value) for name, value in row.items()}
        for row in rows
    ]
