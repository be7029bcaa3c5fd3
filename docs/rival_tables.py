"""The table of ways to make batches, side by side."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from docs.rows import Lines
from experiments.rivals.runs import Run, Runs
from experiments.rivals.summary import BASELINE, arms_of, reached
from stages.report.table import share, signed
from stages.scoring.paired import difference


def rivals_table(files: Sequence[Path]) -> Lines:
    """One row per arm, and for each set two columns.

    These are its difference to random batches, paired by query and seed, with its standard error, and the share of the
    steps after which it is where random batches end.
    """
    (file,) = files
    runs = Runs.open(file.parent)
    epochs = max(int(row["epochs"]) for row in runs.costs)
    kind = str(runs.costs[0]["kind"])
    sets = list(dict.fromkeys(str(row["set"]) for row in runs.costs))
    found = {name: arms_of(runs, name, kind, epochs) for name in sets}
    lines = [["", *(column for name in sets for column in (name, "steps"))]]
    for arm in dict.fromkeys(arm for arms in found.values() for arm in arms):
        cells = []
        for name in sets:
            if arm not in found[name]:
                cells += ["", ""]
                continue
            ours, random = (_stacked(found[name][each]) for each in (arm, BASELINE))
            gain = difference(ours, random)
            if arm == BASELINE:
                cells += [share(float(random.mean())), ""]
                continue
            steps = reached(runs, Run(name, arm, kind, epochs, 0), found[name])
            cells += [signed(gain.mean, gain.error), "never" if np.isinf(steps) else f"{steps:.2f}"]
        lines.append([arm, *cells])
    return lines


def _stacked(seeds: dict[int, np.ndarray]) -> np.ndarray:
    return np.stack([seeds[seed].astype(np.float64) for seed in sorted(seeds)])
