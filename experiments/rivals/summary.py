"""What the runs in a folder show: each arm against random batches, paired by query and seed.

``python -m experiments.rivals.summary FOLDER`` prints and writes ``FOLDER.tsv``, one row per set, kind, number of
epochs and arm. ``gain`` is the difference in nDCG@10 to random batches for the same steps; ``over_twice`` that to
random batches for twice the steps, if there are any; each with its standard error. ``reached`` is the share of the
steps after which the mean curve is where random batches end. ``FOLDER-curves.tsv`` gets the mean curves.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import command
from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from experiments.rivals import BASELINE
from experiments.rivals.runs import Row, Run, Runs
from stages.report.table import signed
from stages.scoring.paired import difference

COSTS = ("hardness", "masked", "batches_s")
EXAMPLE = "python -m experiments.rivals.summary experiments/rivals/static"
Scores = dict[int, NDArray[np.float16]]
"""Scores ``(Q,)`` of each seed."""


class Setting(NamedTuple):
    """What arms are compared at."""

    set: str
    kind: str
    epochs: int


def main(folder: str) -> str:
    """Print all rows, and write them."""
    runs = Runs.open(Path(folder))
    if not runs.costs:
        raise InputError(f"{folder}: no runs; make some with python -m experiments.rivals")
    settings = dict.fromkeys(map(_setting, runs.costs))
    rows = [row for setting in settings for row in summarise(runs, setting)]
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    file = Path(f"{folder.rstrip('/')}.tsv")
    write_tsv(file, rows)
    write_tsv(
        file.with_stem(f"{file.stem}-curves"), [row for setting in settings for row in mean_curves(runs, setting)]
    )
    return f"{len(runs.costs)} runs, {file}"


def summarise(runs: Runs, setting: Setting) -> list[Row]:
    """One row per arm, best first."""
    arms = scores_of(runs, setting)
    twice = scores_of(runs, setting._replace(epochs=2 * setting.epochs)).get(BASELINE)
    rows: list[Row] = []
    for arm, seeds in sorted(arms.items(), key=lambda item: -_mean(item[1])):
        row: Row = {**setting._asdict(), "arm": arm, "seeds": len(seeds), "queries": len(next(iter(seeds.values())))}
        row |= {"ndcg": round(_mean(seeds), 4), "gain": gain(seeds, arms.get(BASELINE))}
        row |= {"over_twice": gain(seeds, twice), "reached": round(_reached(runs, setting, arm, arms), 2)}
        rows.append(row | _costs(runs, setting, arm))
    return rows


def mean_curves(runs: Runs, setting: Setting) -> list[Row]:
    """One row per arm and point: nDCG@10 after ``step`` steps, the mean over seeds."""
    rows: list[Row] = []
    for arm, seeds in scores_of(runs, setting).items():
        steps, ndcg = _curve(runs, setting, arm, seeds)
        points = zip(steps.tolist(), ndcg.tolist(), strict=True)
        rows += [
            {**setting._asdict(), "arm": arm, "step": int(step), "ndcg": round(value, 4)} for step, value in points
        ]
    return rows


def scores_of(runs: Runs, setting: Setting) -> dict[str, Scores]:
    """The scores of each arm."""
    arms: dict[str, Scores] = {}
    for key, scores in runs.scores.get(setting.set, {}).items():
        arm, kind, epochs, seed = key.split("|")
        if (kind, epochs) == (setting.kind, str(setting.epochs)):
            arms.setdefault(arm, {})[int(seed)] = scores
    return arms


def gain(seeds: Scores, others: Scores | None) -> str:
    """The difference of two arms in nDCG@10, with its standard error; empty if there is none to tell."""
    common = sorted(seeds.keys() & (others or {}).keys())
    if not common or others is None or seeds is others:
        return ""
    paired = difference(*(np.stack([each[seed] for seed in common]) for each in (seeds, others)))
    return signed(paired.mean, paired.error)


def share_to_reach(steps: NDArray[np.float64], ndcg: NDArray[np.float64], goal: float) -> float:
    """The share of the steps after which a curve first reaches ``goal``, between points on a straight line; infinite
    if it never does."""
    reached = np.flatnonzero(ndcg >= goal)
    if not len(reached):
        return float("inf")
    last = int(reached[0])
    if last == 0:
        return float(steps[0] / steps[-1])
    before = last - 1
    part = (goal - ndcg[before]) / (ndcg[last] - ndcg[before])
    return float((steps[before] + part * (steps[last] - steps[before])) / steps[-1])


def _reached(runs: Runs, setting: Setting, arm: str, arms: dict[str, Scores]) -> float:
    if not arms[arm].keys() & arms.get(BASELINE, {}).keys():
        return float("nan")
    common = arms[arm].keys() & arms[BASELINE].keys()
    own, random = ({seed: each[seed] for seed in sorted(common)} for each in (arms[arm], arms[BASELINE]))
    return share_to_reach(*_curve(runs, setting, arm, own), _mean(random))


def _curve(runs: Runs, setting: Setting, arm: str, seeds: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Steps, and the mean of nDCG@10 over seeds."""
    curves = [runs.curve(Run(setting.set, arm, setting.kind, setting.epochs, seed)) for seed in seeds]
    return curves[0][0], np.mean([curve[1] for curve in curves], axis=0)


def _costs(runs: Runs, setting: Setting, arm: str) -> Row:
    own = [row for row in runs.costs if (_setting(row), row["arm"]) == (setting, arm)]
    return {name: round(float(np.mean([float(row[name]) for row in own])), 3) for name in COSTS}


def _setting(row: Row) -> Setting:
    return Setting(str(row["set"]), str(row["kind"]), int(row["epochs"]))


def _mean(seeds: Scores) -> float:
    return float(np.mean([scores.astype(np.float64).mean() for scores in seeds.values()]))


if __name__ == "__main__":
    command("experiments.rivals.summary", str(__doc__), EXAMPLE, folder="what python -m experiments.rivals wrote")
