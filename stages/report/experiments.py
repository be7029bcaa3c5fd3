"""Experiments: tables of runs that benchmarks wrote, several seeds a setting, and what the runs come to."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from formats.errors import InputError
from formats.results import read_tsv
from stages.report.table import NONE, Table, share

Run = dict[str, str]
SEED = "seed"
_LARGE = 100


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """``same`` are the settings that all runs share; ``table`` has a row for each of the others, mean ± spread."""

    name: str
    same: str
    table: Table


def read_experiments(folder: Path) -> list[Experiment]:
    """Every ``GROUP/NAME.tsv`` in ``folder`` that tells runs apart by ``seed``, which other tables do not.

    Raises:
        InputError: a measure is not a number.
    """
    found = []
    for file in sorted(folder.glob("*/*.tsv")):
        runs = read_tsv(file, made_by=file.stem)
        if runs and SEED in runs[0]:
            try:
                found.append(summarise_runs(file.relative_to(folder).with_suffix("").as_posix(), runs))
            except ValueError as error:
                raise InputError(
                    f"{file}: {error}; columns behind '{SEED}' hold numbers, settings stand before"
                ) from None
    return found


def summarise_runs(name: str, runs: Sequence[Run]) -> Experiment:
    """Columns before ``seed`` are settings, those behind it measures.

    Raises:
        ValueError: a measure is not a number.
    """
    columns = list(runs[0])
    settings, measures = columns[: columns.index(SEED)], columns[columns.index(SEED) + 1 :]
    differ = [key for key in settings if len({run[key] for run in runs}) > 1] or settings[:1]
    same = ", ".join(f"{_title(key)}: {runs[0][key]}" for key in settings if key not in differ)
    rows = [
        [*setting, *(_spread([run[name] for run in runs if _key(run, differ) == setting]) for name in measures)]
        for setting in dict.fromkeys(_key(run, differ) for run in runs)
    ]
    header = [_title(column) for column in (*differ, *measures)]
    return Experiment(name=name, same=same, table=Table(header=header, rows=rows, words=frozenset(range(len(differ)))))


def _key(run: Run, settings: Sequence[str]) -> tuple[str, ...]:
    return tuple(run[key] for key in settings)


def _title(column: str) -> str:
    return column.replace("ndcg", "nDCG").replace("_", " ")


def _spread(cells: Sequence[str]) -> str:
    """Mean, and the standard deviation of several; a cell may be empty."""
    values = [float(cell) for cell in cells if cell]
    if not values:
        return NONE
    write = share if abs(values[0]) < _LARGE else "{:,.0f}".format
    return write(statistics.mean(values)) + (f" ± {write(statistics.stdev(values))}" if len(values) > 1 else "")
