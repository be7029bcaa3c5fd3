"""Print what the runs in a folder show: each arm against random batches, paired by query and seed."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import command
from batchwright.core.errors import InputError
from experiments.rivals.reach import share_to_reach
from experiments.rivals.runs import Run, Runs
from stages.scoring.paired import difference

BASELINE = "random"
HEADER = "arm                          nDCG@10   - random        - twice random  reached  hardness  masked  batches s"
EXAMPLE = "python -m experiments.rivals.summary experiments/rivals/static"


def main(folder: str) -> str:
    """Print one table per set, kind and number of epochs."""
    runs = Runs.open(Path(folder))
    if not runs.costs:
        raise InputError(f"{folder}: no runs; make some with python -m experiments.rivals")
    groups = dict.fromkeys((row["set"], row["kind"], row["epochs"]) for row in runs.costs)
    for name, kind, epochs in groups:
        print(f"\n{name}, {kind}, {epochs} epochs\n{HEADER}")
        for line in table(runs, str(name), str(kind), int(epochs)):
            print(line)
    return f"{len(runs.costs)} runs"


def table(runs: Runs, name: str, kind: str, epochs: int) -> list[str]:
    """One line per arm, best first.

    The difference to random batches, and to random batches of twice the steps if they were run, with standard errors.
    ``reached`` is the share of the steps after which the mean curve is where random batches end.
    """
    arms = arms_of(runs, name, kind, epochs)
    twice = arms_of(runs, name, kind, 2 * epochs)
    lines = []
    for arm, seeds in sorted(arms.items(), key=lambda item: -_mean(item[1])):
        cells = [f"{arm:28}", f"{_mean(seeds):.4f} ", _against(seeds, arms), _against(seeds, twice)]
        cells.append(f"{reached(runs, Run(name, arm, kind, epochs, 0), arms):7.2f}")
        costs = [
            row
            for row in runs.costs
            if (row["set"], row["arm"], row["kind"], row["epochs"]) == (name, arm, kind, epochs)
        ]
        for measure, digits in (("hardness", 3), ("masked", 3), ("batches_s", 1)):
            cells.append(f"{np.mean([float(row[measure]) for row in costs]):8.{digits}f}")
        lines.append(" ".join(cells))
    return lines


def arms_of(runs: Runs, name: str, kind: str, epochs: int) -> dict[str, dict[int, NDArray[np.float16]]]:
    """Scores ``(Q,)`` of each arm and seed."""
    found: dict[str, dict[int, NDArray[np.float16]]] = {}
    for key, scores in runs.scores.get(name, {}).items():
        arm, of_kind, of_epochs, seed = key.split("|")
        if (of_kind, of_epochs) == (kind, str(epochs)):
            found.setdefault(arm, {})[int(seed)] = scores
    return found


def _against(seeds: dict[int, NDArray[np.float16]], arms: dict[str, dict[int, NDArray[np.float16]]]) -> str:
    others = arms.get(BASELINE, {})
    common = sorted(seeds.keys() & others.keys())
    if not common:
        return " " * 15
    mean, error, _ = difference(*(np.stack([each[seed] for seed in common]) for each in (seeds, others)))
    return f"{mean:+.4f} ± {error:.4f}"


def reached(runs: Runs, run: Run, arms: dict[str, dict[int, NDArray[np.float16]]]) -> float:
    """The share of the steps after which the mean curve of the run's arm is where random batches end."""
    if BASELINE not in arms:
        return float("nan")
    curves = [runs.curve(run._replace(seed=seed)) for seed in arms[run.arm]]
    steps, ndcg = curves[0][0], np.mean([curve[1] for curve in curves], axis=0)
    ends = [runs.curve(run._replace(arm=BASELINE, seed=seed))[1][-1] for seed in arms[BASELINE]]
    return share_to_reach(steps, ndcg, float(np.mean(ends)))


def _mean(seeds: dict[int, NDArray[np.float16]]) -> float:
    return float(np.mean([scores.astype(np.float64).mean() for scores in seeds.values()]))


if __name__ == "__main__":
    command("experiments.rivals.summary", str(__doc__), EXAMPLE, folder="what python -m experiments.rivals wrote")
