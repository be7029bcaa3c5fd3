"""Tables of costs."""

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from docs.rows import Lines, Row, read_files
from stages.report.table import share

_REFERENCE = "reference"
_BATCHES = 20
"""Data sets with fewer batches are left out of the medians."""


def batches_table(files: Sequence[Path]) -> Lines:
    """One row per method, one column per batch size: medians over data sets of ratios to the reference."""
    rows = read_files(files)
    sizes = list(dict.fromkeys(row["batch"] for row in rows))
    header = ["unmasked hardness; time, of the reference's", *(f"batches of {size}" for size in sizes)]
    methods = dict.fromkeys(row["method"] for row in rows)
    return [header, *([method, *(_compare(rows, method, size) for size in sizes)] for method in methods)]


def rows_table(files: Sequence[Path]) -> Lines:
    """All rows of the files, with long numbers rounded."""
    rows = read_files(files)
    return [list(rows[0]), *([_plain(cell) for cell in row.values()] for row in rows)]


def scores_table(files: Sequence[Path]) -> Lines:
    """One row per way to score, one column per batch size: seconds and memory."""
    rows = read_files(files)
    sizes = list(dict.fromkeys(row["batch"] for row in rows))
    lines = [["processor time; peak memory", *(f"batches of {size}" for size in sizes)]]
    for way in dict.fromkeys(row["way"] for row in rows):
        found = {row["batch"]: f"{float(row['seconds']):.2f} s; {row['mib']} MiB" for row in rows if row["way"] == way}
        lines.append([way, *(found.get(size, "") for size in sizes)])
    return lines


def scale_table(files: Sequence[Path]) -> Lines:
    """One row per stage and one for all, one column per number of pairs and cores: seconds and the most memory."""
    rows = read_files(files)
    sizes = list(dict.fromkeys((row["pairs"], row["cores"]) for row in rows))
    lines = [
        [
            "seconds; MiB",
            *(f"{int(pairs):,} pairs, {cores} {'core' if cores == '1' else 'cores'}" for pairs, cores in sizes),
        ]
    ]
    for stage in [*dict.fromkeys(row["stage"] for row in rows), "all"]:
        own = [row for row in rows if stage in (row["stage"], "all")]
        lines.append([stage, *(_sums([row for row in own if (row["pairs"], row["cores"]) == size]) for size in sizes)])
    return lines


def _sums(rows: Sequence[Row]) -> str:
    return f"{sum(float(row['seconds']) for row in rows):.0f}; {max(int(row['mib']) for row in rows):,}"


def _compare(rows: Sequence[Row], method: str, size: str) -> str:
    """Hardness and time of a method relative to the reference."""
    references = {row["data"]: row for row in rows if (row["method"], row["batch"]) == (_REFERENCE, size)}
    own = [row for row in rows if (row["method"], row["batch"]) == (method, size) and int(row["batches"]) >= _BATCHES]
    harder, slower = (
        [float(row[name]) / float(references[row["data"]][name]) for row in own] for name in ("unmasked", "seconds")
    )
    hardness = f"{statistics.median(harder):.2f} ({min(harder):.2f} to {max(harder):.2f})"
    return f"{hardness}; {share(statistics.median(slower))}"


def _plain(cell: str) -> str:
    number = re.fullmatch(r"-?\d+\.\d+(e[-+]?\d+)?", cell)  # words and differences may have a point too
    return str(round(float(cell), 4) + 0.0) if number else cell  # + 0.0: no -0.0
