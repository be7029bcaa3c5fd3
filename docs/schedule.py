"""Random batches against the schedule from random to hard ones: README's table and picture."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from docs.rows import Lines, Row, read_files
from stages.report.table import share, signed
from stages.scoring.paired import difference

DOMAIN = "medquad"
RANDOM, SCHEDULE = "random", "random, then contextual"
MEASURE = "ndcg@10 home"


@dataclass(frozen=True, kw_only=True)
class Length:
    """nDCG@10 after ``epochs``, one value per seed, in the same order of seeds."""

    epochs: int
    random: list[float]
    schedule: list[float]


def read_lengths(files: Sequence[Path]) -> list[Length]:
    """Runs on ``DOMAIN``, shortest first."""
    rows = [row for row in read_files(files) if row["domains"] == DOMAIN]
    epochs = sorted({int(row["epochs"]) for row in rows})
    return [Length(epochs=each, random=_of(rows, RANDOM, each), schedule=_of(rows, SCHEDULE, each)) for each in epochs]


def schedule_table(files: Sequence[Path]) -> Lines:
    """One row per number of epochs: both means, and the paired difference with its standard error."""
    lines = [["epochs", "random batches", "Batchwright's schedule", "difference"]]
    for length in read_lengths(files):
        found = difference(length.schedule, length.random)
        means = [share(statistics.mean(values)) for values in (length.random, length.schedule)]
        lines.append([str(length.epochs), *means, signed(found.mean, found.error)])
    return lines


def _of(rows: Sequence[Row], setting: str, epochs: int) -> list[float]:
    found = {int(row["seed"]): row for row in rows if (row["setting"], int(row["epochs"])) == (setting, epochs)}
    return [float(found[seed][MEASURE]) for seed in sorted(found)]
