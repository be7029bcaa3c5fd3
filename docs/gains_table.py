"""What training brings."""

from collections.abc import Sequence
from pathlib import Path

from docs.rows import Lines
from stages.report.differences import differences_table, read_differences


def gains_table(files: Sequence[Path]) -> Lines:
    """One row per run: what it gains over its start, BM25 and random batches, as in the report."""
    (file,) = files
    table = differences_table(read_differences(file))
    groups = [group for group, span in table.groups or [] for _ in range(span)]
    several = len(set(groups)) > 2
    names = [f"{group}, {name}" if several else name for group, name in zip(groups, table.header, strict=True)]
    return [["", *names[1:]], *table.rows]
