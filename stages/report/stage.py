"""Show the results of all other stages on one page.

To add a section, write a function in ``sections`` that reads what it needs and returns a ``Section``, or ``None`` if
there is nothing to show. Then name it in ``SECTIONS``.
"""

from collections.abc import Callable

from markupsafe import Markup

from batchwright.core.atomic import atomic_file
from batchwright.core.params import load_params
from batchwright.core.paths import REPORT
from batchwright.core.terminal import bar
from batchwright.formats.runs import Runs
from stages.report.browser import section as batches
from stages.report.page import Section, render
from stages.report.records import read_ingested, read_pack_summaries
from stages.report.scores import HELD_OUT, Evaluation, evaluation_files, read_evaluation
from stages.report.sections import data, examples, outcome, results, training
from stages.report.table import share

SECTIONS: list[Callable[[], Section | None]] = [
    outcome.section,
    batches.section,
    data.hardness,
    examples.section,
    results.section,
    data.counts,
    training.losses,
    training.pretraining,
]


def main() -> str:
    """Write ``report/index.html``."""
    evaluation = read_evaluation(evaluation_files(load_params("runs", Runs).root))
    summary = _summary(evaluation)
    sections = [section for make in bar(SECTIONS, desc="report", unit="section") if (section := make()) is not None]
    page = render(summary, sections)
    with atomic_file(REPORT) as temporary:
        temporary.write_text(page, encoding="utf-8")
    system, ndcg = evaluation.best
    return f"{REPORT}, {len(page):,} characters; best nDCG@10 on {_place(evaluation)} {ndcg:.3f} ({system})"


def _summary(evaluation: Evaluation) -> Markup:
    ingested, packed = read_ingested(), read_pack_summaries()["contextual"]
    system, ndcg = evaluation.best
    domains = f"{len(ingested.domains)} domain{'s' if len(ingested.domains) != 1 else ''}"
    return Markup("{:,} pairs in {}, {:,} contextual batches; best nDCG@10 on {} <strong>{}</strong> ({}).").format(
        ingested.pairs, domains, packed.batches, _place(evaluation), share(ndcg), system
    )


def _place(evaluation: Evaluation) -> str:
    return "held-out queries" if evaluation.first == HELD_OUT else evaluation.first
