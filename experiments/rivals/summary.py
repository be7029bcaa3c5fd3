"""What the runs in a folder show: each arm against random batches, each at its own best settings.

``python -m experiments.rivals.summary FOLDER`` prints and writes ``FOLDER.tsv``, one row per set, kind, number of
epochs and arm. ``gain`` is the difference in nDCG@10 to random batches, with its standard error over queries and seeds.
``reached`` is the share of the steps after which the mean curve is where random batches end. ``FOLDER-curves.tsv`` gets
the mean curves, ``FOLDER-grid.tsv`` all settings that were tried, and what they scored on dev queries.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import command
from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from experiments.rivals import BASELINE
from experiments.rivals.runs import Result, Row, Run, Runs
from experiments.rivals.training import Settings
from stages.report.table import signed
from stages.scoring.paired import difference

COSTS = ("hardness", "masked", "batches_s", "training_s")
EXAMPLE = "python -m experiments.rivals.summary experiments/rivals/static"


class Group(NamedTuple):
    """What arms are compared at."""

    set: str
    kind: str
    epochs: int


class Outcome(NamedTuple):
    """An arm's runs at its own best settings: ``scores`` ``(seeds, Q)``, and the mean curve and costs of all seeds."""

    settings: Settings
    scores: NDArray[np.float16]
    steps: NDArray[np.int64]
    ndcg: NDArray[np.float64]
    costs: dict[str, float]


def main(folder: str) -> str:
    """Print all rows, and write them."""
    runs = Runs(Path(folder))
    groups = outcomes(runs)
    if not groups:
        raise InputError(f"{folder}: no runs; make some with python -m experiments.rivals")
    rows = [row for group, arms in groups.items() for row in summarise(group, arms)]
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    file = Path(f"{folder.rstrip('/')}.tsv")
    write_tsv(file, rows)
    write_tsv(file.with_stem(f"{file.stem}-curves"), list(_curves(groups)))
    write_tsv(file.with_stem(f"{file.stem}-grid"), sorted(_tried(runs), key=lambda row: list(row.values())))
    return f"{len(list(runs))} runs, {file}"


def outcomes(runs: Runs) -> dict[Group, dict[str, Outcome]]:
    """The outcome of each arm, if it has one already."""
    by_arm: dict[tuple[Group, str], dict[Run, Result]] = defaultdict(dict)
    for run, result in runs:
        if run.seed:
            by_arm[Group(run.set, run.kind, run.epochs), run.arm][run] = result
    groups: dict[Group, dict[str, Outcome]] = defaultdict(dict)
    for (group, arm), by_run in sorted(by_arm.items()):
        if len({run.settings for run in by_run}) > 1:
            raise InputError(f"{runs.folder}: {arm!r} on {group.set} was tested at several settings; remove its runs")
        groups[group][arm] = _outcome(by_run)
    return dict(groups)


def _outcome(by_run: Mapping[Run, Result]) -> Outcome:
    results = [by_run[run] for run in sorted(by_run, key=lambda run: run.seed)]
    return Outcome(
        next(iter(by_run)).settings,
        np.stack([result.scores for result in results]),
        results[0].steps,
        np.mean([result.ndcg for result in results], axis=0),
        {name: float(np.mean([result.costs[name] for result in results])) for name in COSTS},
    )


def summarise(group: Group, arms: Mapping[str, Outcome]) -> list[Row]:
    """One row per arm, best first."""
    random = arms.get(BASELINE)
    rows: list[Row] = []
    for arm, outcome in sorted(arms.items(), key=lambda item: -_mean(item[1])):
        seeds, queries = outcome.scores.shape
        row: Row = {**group._asdict(), "arm": arm, **outcome.settings._asdict(), "seeds": seeds, "queries": queries}
        row |= {"ndcg": round(_mean(outcome), 4), "gain": gain(outcome.scores, random and random.scores)}
        row["reached"] = round(share_to_reach(outcome.steps, outcome.ndcg, _mean(random)), 2) if random else ""
        row.update({name: round(value, 3) for name, value in outcome.costs.items()})
        rows.append(row)
    return rows


def gain(ours: NDArray[np.float16], others: NDArray[np.float16] | None) -> str:
    """The difference of two arms in nDCG@10, with its standard error; empty if there is none to tell."""
    if others is None or ours is others:
        return ""
    common = min(len(ours), len(others))
    paired = difference(ours[:common], others[:common])
    return signed(paired.mean, paired.error)


def share_to_reach(steps: NDArray[np.int64], ndcg: NDArray[np.float64], goal: float) -> float:
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


def _curves(groups: Mapping[Group, Mapping[str, Outcome]]) -> Iterator[Row]:
    """One row per arm and point: nDCG@10 after ``step`` steps, the mean over seeds."""
    for group, arms in groups.items():
        for arm, outcome in arms.items():
            for step, ndcg in zip(outcome.steps.tolist(), outcome.ndcg.tolist(), strict=True):
                yield {**group._asdict(), "arm": arm, "step": step, "ndcg": round(ndcg, 4)}


def _tried(runs: Runs) -> Iterator[Row]:
    for run, result in runs:
        if not run.seed:
            row: Row = {**Group(run.set, run.kind, run.epochs)._asdict(), "arm": run.arm, **run.settings._asdict()}
            yield {**row, "ndcg": round(float(result.ndcg[-1]), 4)}


def _mean(outcome: Outcome) -> float:
    return float(outcome.scores.mean(dtype=np.float64))


if __name__ == "__main__":
    command("experiments.rivals.summary", str(__doc__), EXAMPLE, folder="what python -m experiments.rivals wrote")
