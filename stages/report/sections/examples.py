"""Examples: what was retrieved for some queries before and after training."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from batchwright.formats.runs import Runs
from stages.report.differences import read_differences
from stages.report.records import Record, read_rows
from stages.report.section import Section
from stages.report.templates import TEMPLATES

EVALUATED = RESULTS / "evaluate"
SHOWN = 3


class Found(Record):
    """One row of ``NAME-examples.tsv``: a document that a system found for a query."""

    query: str
    system: str
    rank: int
    relevant: bool
    document: str


Answers = Mapping[str, Sequence[Found]]
"""What one system found for each query."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A query with what was found ``before`` and ``after``, and the ranks of the first relevant document."""

    query: str
    before: Sequence[Found]
    after: Sequence[Found]
    ranks: str


def section() -> Section | None:
    """Return the examples of each run beside those of the model it starts from; the best run's are unfolded."""
    runs = load_params("runs", Runs).root
    found = _by_system(
        [
            *read_rows(Found, RESULTS / "baselines-examples.tsv", made_by="baselines"),
            *(row for run in runs for row in read_rows(Found, EVALUATED / f"{run}-examples.tsv", made_by="evaluate")),
        ]
    )
    starts = {row.system: row for row in read_differences() if row.over == "start"}
    told = {
        name: (row.reference, compare(found[row.reference], found[name]))
        for name, row in starts.items()
        if name in found and row.reference in found
    }
    if not told:
        return None
    best = max(told, key=lambda name: starts[name].ndcg)
    html = TEMPLATES.get_template("examples.html.j2").render(told=told, best=best, shown=SHOWN)
    return Section(
        id="examples",
        title="Queries before and after training",
        intro="The first documents that were found for queries drawn by hash, so none of them was picked. A tick marks "
        "a document that answers the query.",
        parts=[Markup(html)],
    )


def compare(before: Answers, after: Answers) -> list[Example]:
    """Return the queries that both systems were asked."""
    return [
        Example(query=query, before=own, after=after[query], ranks=f"{_rank(own)} → {_rank(after[query])}")
        for query, own in before.items()
        if query in after
    ]


def _rank(found: Sequence[Found]) -> str:
    return next((f"{row.rank}" for row in found if row.relevant), "not found")


def _by_system(rows: Iterable[Found]) -> dict[str, Answers]:
    """Return what each system found, by query."""
    by_system: dict[str, dict[str, list[Found]]] = {}
    for row in rows:
        by_system.setdefault(row.system, {}).setdefault(row.query, []).append(row)
    return dict(by_system)
