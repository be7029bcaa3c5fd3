"""Examples: what was retrieved for some queries before and after training."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from batchwright.formats.runs import Runs
from stages.report.page import TEMPLATES, Section
from stages.report.records import Record, read_rows
from stages.report.scores import read_differences

SHOWN = 3
"""Documents that are shown for each query."""


class RankedDocument(Record):
    """One row of ``NAME-examples.tsv``: a document that a system found for a query."""

    query: str
    system: str
    rank: int
    relevant: bool
    document: str


Answers = Mapping[str, Sequence[RankedDocument]]
"""What one system found for each query."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A query with what was found ``before`` and ``after``, and the ranks of the first relevant document."""

    query: str
    before: Sequence[RankedDocument]
    after: Sequence[RankedDocument]
    ranks: str


def section() -> Section | None:
    """Return the examples of each run beside those of the model it starts from; the best run's are unfolded."""
    runs = load_params("runs", Runs).root
    files = {RESULTS / "baselines-examples.tsv": "baselines"}
    files |= {RESULTS / "evaluate" / f"{run}-examples.tsv": "evaluate" for run in runs}
    answers = _by_system(row for file, stage in files.items() for row in read_rows(RankedDocument, file, stage))
    starts = {row.system: row for row in read_differences() if row.over == "start"}
    examples = {
        name: (row.reference, compare(answers[row.reference], answers[name]))
        for name, row in starts.items()
        if name in answers and row.reference in answers
    }
    if not examples:
        return None
    best = max(examples, key=lambda name: starts[name].ndcg)
    html = TEMPLATES.get_template("examples.html.j2").render(runs=examples, best=best, shown=SHOWN)
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
        Example(query=query, before=ranked, after=after[query], ranks=f"{_rank(ranked)} → {_rank(after[query])}")
        for query, ranked in before.items()
        if query in after
    ]


def _rank(documents: Sequence[RankedDocument]) -> str:
    return next((f"{row.rank}" for row in documents if row.relevant), "not found")


def _by_system(rows: Iterable[RankedDocument]) -> dict[str, Answers]:
    """Return what each system found, by query."""
    by_system: dict[str, dict[str, list[RankedDocument]]] = {}
    for row in rows:
        by_system.setdefault(row.system, {}).setdefault(row.query, []).append(row)
    return dict(by_system)
