"""Show the results of all other stages on one page."""

from markupsafe import Markup

from batchwright.core.atomic import atomic_file
from batchwright.core.bar import bar
from batchwright.core.params import load_params
from batchwright.core.paths import REPORT
from batchwright.formats.runs import Runs
from stages.report.evaluation import HELD_OUT, Evaluation, evaluation_files, read_evaluation
from stages.report.page import render
from stages.report.sections import SECTIONS
from stages.report.sections.counts import Ingested, read_ingested
from stages.report.sections.hardness import PackSummary, read_summaries
from stages.report.table import share


def main() -> str:
    """Write ``report/index.html``."""
    evaluation = read_evaluation(evaluation_files(load_params("runs", Runs).root))
    summary = _summary(read_ingested(), read_summaries()["contextual"], evaluation)
    sections = [section for make in bar(SECTIONS, desc="report", unit="section") if (section := make()) is not None]
    page = render(summary, sections)
    with atomic_file(REPORT) as temporary:
        temporary.write_text(page, encoding="utf-8")
    system, ndcg = evaluation.best
    return f"{REPORT}, {len(page):,} characters; best nDCG@10 on {_place(evaluation)} {ndcg:.3f} ({system})"


def _summary(ingested: Ingested, packed: PackSummary, evaluation: Evaluation) -> Markup:
    system, ndcg = evaluation.best
    domains = f"{len(ingested.domains)} domain{'s' if len(ingested.domains) != 1 else ''}"
    batches = f"{packed.batches:,} contextual batches"
    return Markup("{:,} pairs in {}, {}; best nDCG@10 on {} <strong>{}</strong> ({}).").format(
        ingested.pairs, domains, batches, _place(evaluation), share(ndcg), system
    )


def _place(evaluation: Evaluation) -> str:
    return "held-out queries" if evaluation.first == HELD_OUT else evaluation.first
