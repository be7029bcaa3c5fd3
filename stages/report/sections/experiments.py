"""Experiments: measurements over several seeds, run by hand and kept with the code."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.core.paths import EXPERIMENTS
from stages.report.section import Section, show_long_table
from stages.report.table import NONE, Table, share

Trial = dict[str, str]
"""One row of an experiment's table."""

SEED = "seed"
_LARGE = 100


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """``same`` lists the settings that all trials share; ``table`` has one row per combination of the others."""

    name: str
    same: str
    table: Table


def section() -> Section | None:
    """Return one table per experiment."""
    experiments = read_experiments(EXPERIMENTS)
    if not experiments:
        return None
    return Section(
        id="experiments",
        title="Experiments",
        intro="Measured by the scripts in experiments/ and kept with the code; the pipeline does not repeat them. Each "
        "number is the mean ± standard deviation over seeds. With three seeds, a difference within the spread means "
        "nothing.",
        parts=[
            show_long_table(each.table, each.name + (f" ({each.same})" if each.same else "")) for each in experiments
        ],
    )


def read_experiments(folder: Path) -> list[Experiment]:
    """Read every ``GROUP/NAME.tsv`` with a column ``seed``; tables without one are not experiments.

    Raises:
        InputError: a measure is not a number.
    """
    found = []
    for file in sorted(folder.glob("*/*.tsv")):
        trials = read_tsv(file, made_by=file.stem)
        if trials and SEED in trials[0]:
            try:
                found.append(summarise(file.relative_to(folder).with_suffix("").as_posix(), trials))
            except ValueError as error:
                raise InputError(
                    f"{file}: {error}; columns after '{SEED}' must be numbers, so put settings before it"
                ) from None
    return found


def summarise(name: str, trials: Sequence[Trial]) -> Experiment:
    """Compute means and spreads over seeds; columns before ``seed`` are settings, those after it are measures.

    Raises:
        ValueError: a measure is not a number.
    """
    columns = list(trials[0])
    settings, measures = columns[: columns.index(SEED)], columns[columns.index(SEED) + 1 :]
    differ = [key for key in settings if len({trial[key] for trial in trials}) > 1] or settings[:1]
    same = ", ".join(f"{_title(key)}: {trials[0][key]}" for key in settings if key not in differ)
    rows = [
        [*setting, *(_spread([trial[name] for trial in trials if _key(trial, differ) == setting]) for name in measures)]
        for setting in dict.fromkeys(_key(trial, differ) for trial in trials)
    ]
    header = [_title(column) for column in (*differ, *measures)]
    return Experiment(name=name, same=same, table=Table(header=header, rows=rows, words=frozenset(range(len(differ)))))


def _key(trial: Trial, settings: Sequence[str]) -> tuple[str, ...]:
    return tuple(trial[key] for key in settings)


def _title(column: str) -> str:
    return column.replace("ndcg", "nDCG").replace("_", " ")


def _spread(cells: Sequence[str]) -> str:
    """Format the mean of the cells, with the standard deviation if there are several; empty cells are skipped."""
    values = [float(cell) for cell in cells if cell]
    if not values:
        return NONE
    write = share if abs(values[0]) < _LARGE else "{:,.0f}".format
    return write(statistics.mean(values)) + (f" ± {write(statistics.stdev(values))}" if len(values) > 1 else "")
