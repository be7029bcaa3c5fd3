"""Rows of TSV files, and how tables show numbers."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from batchwright.core.results import read_tsv
from stages.report.table import share

Row = dict[str, str]
Lines = list[list[str]]
"""A table: its header, then its rows."""


def read_files(files: Sequence[Path]) -> list[Row]:
    """The rows of all files."""
    return [row for file in files for row in read_tsv(file, made_by=file.stem)]


def spread(values: Sequence[float]) -> str:
    """Mean, and the standard deviation if there is more than one value."""
    if not values:
        return ""
    return share(statistics.mean(values)) + (f" ± {share(statistics.stdev(values))}" if len(values) > 1 else "")
