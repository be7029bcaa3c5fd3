"""Rows of TSV files, and how tables show numbers."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from batchwright.core.results import read_tsv
from stages.report.table import share, signed
from stages.scoring.paired import difference

Row = dict[str, str]
Lines = list[list[str]]
"""A table: its header, then its rows."""


def read_files(files: Sequence[Path]) -> list[Row]:
    """The rows of all files."""
    return [row for file in files for row in read_tsv(file, made_by=file.stem)]


def by_seed(rows: Sequence[Row], measure: str) -> dict[str, float]:
    """The values of one setting, by seed."""
    return {row["seed"]: float(row[measure]) for row in rows if row[measure]}


def compared(ours: Mapping[str, float], reference: Mapping[str, float]) -> str:
    """Mean over seeds, and the difference to a reference with its standard error, paired by seed: `.6 (+.1 ± .01)`."""
    if not ours:
        return ""
    seeds = sorted(ours.keys() & reference.keys())
    mean = share(statistics.mean(ours.values()))
    if ours == reference or len(seeds) < 2:
        return mean
    found = difference([ours[seed] for seed in seeds], [reference[seed] for seed in seeds])
    return f"{mean} ({signed(found.mean, found.error)})"
