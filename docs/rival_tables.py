"""The table of ways to make batches, side by side."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from docs.rows import Lines, Row, read_files
from experiments.rivals import BASELINE
from stages.report.table import NONE, share

OURS = ("ours", "ours, InfoNCE")
"""Our batches and loss; or, where a model that retrieves already is trained, our batches alone."""


def rivals_table(files: Sequence[Path]) -> Lines:
    """One row per way that was tried on all sets, the largest mean gain first; one column per set, and the mean.

    A cell is the difference in nDCG@10 to random batches for the same steps; random batches for these and, if there are
    any, for twice the steps come first. Last comes the share of the steps after which our batches reach where random
    ones end, and its median.
    """
    rows = read_files(files)
    epochs = min(int(row["epochs"]) for row in rows)
    sets = list(dict.fromkeys(row["set"] for row in rows))
    cells = {(row["arm"], row["set"]): row for row in rows if int(row["epochs"]) == epochs}
    random = {row["set"]: row for row in rows if row["arm"] == BASELINE and int(row["epochs"]) == 2 * epochs}
    arms = [arm for arm in dict.fromkeys(arm for arm, _ in cells) if all((arm, name) in cells for name in sets)]
    ways = {arm: [cells[arm, name]["gain"] for name in sets] for arm in arms if arm != BASELINE}
    twice = [_longer(random.get(name), cells[BASELINE, name]) for name in sets]
    ours = next(arm for arm in OURS if arm in ways)
    reached = [float(cells[ours, name]["reached"]) for name in sets]
    return [
        ["", *sets, "mean"],
        ["random, nDCG@10", *(share(float(cells[BASELINE, name]["ndcg"])) for name in sets), ""],
        *([["random, twice the steps", *twice, _mean(twice)]] if random else []),
        *sorted(([arm, *gains, _mean(gains)] for arm, gains in ways.items()), key=lambda row: -float(row[-1])),
        ["ours reach random's end after (and median)", *(f"{part:.2f}" for part in [*reached, median(reached)])],
    ]


def _longer(longer: Row | None, row: Row) -> str:
    return _signed(float(longer["ndcg"]) - float(row["ndcg"])) if longer else NONE


def _mean(gains: Sequence[str]) -> str:
    """The mean over sets, if there is a gain on each."""
    return NONE if NONE in gains else _signed(mean(float(gain.split()[0]) for gain in gains))


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{share(value)}"
