"""What each run gains: the rows of the stage ``compare``, as one table."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from batchwright.core.paths import RESULTS
from stages.report.evaluation import title
from stages.report.records import Record, read_rows
from stages.report.table import NONE, Table, share, signed

DIFFERENCES = RESULTS / "compare.tsv"


class Difference(Record):
    """One row of ``results/compare.tsv``: nDCG@10 of ``system`` minus that of ``reference``, paired by query."""

    collection: str
    system: str
    over: str
    reference: str
    queries: int
    ndcg: float = Field(alias="ndcg@10")
    difference: float
    error: float


def read_differences(file: Path = DIFFERENCES) -> list[Difference]:
    """Read the differences of all runs."""
    return read_rows(Difference, file, made_by="compare")


def differences_table(rows: Sequence[Difference]) -> Table:
    """Return one row per run: for each collection its nDCG@10, and the difference to each reference."""
    collections = {name: [row for row in rows if row.collection == name] for name in _unique(rows, "collection")}
    overs = {name: _unique(own, "over") for name, own in collections.items()}
    lines = []
    for system in _unique(rows, "system"):
        cells = [system]
        for name, own in collections.items():
            found = {row.over: row for row in own if row.system == system}
            cells.append(share(next(iter(found.values())).ndcg) if found else NONE)
            cells += [_gain(found.get(over)) for over in overs[name]]
        lines.append(cells)
    header = [cell for name in collections for cell in ("nDCG@10", *(f"over {over}" for over in overs[name]))]
    counts = {name: own[0].queries for name, own in collections.items()}
    groups = [(f"{title(name)} ({counts[name]:,})", 1 + len(overs[name])) for name in collections]
    return Table(header=["Run", *header], groups=[("", 1), *groups], rows=lines)


def _gain(row: Difference | None) -> str:
    return NONE if row is None else signed(row.difference, row.error)


def _unique(rows: Sequence[Difference], field: str) -> list[str]:
    return list(dict.fromkeys(getattr(row, field) for row in rows))
