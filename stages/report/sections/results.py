"""Results: how well every system retrieves."""

from collections.abc import Mapping

from markupsafe import Markup
from matplotlib.axes import Axes

from batchwright.core.params import load_params
from batchwright.formats.runs import Runs
from stages.report import charts
from stages.report.differences import differences_table, read_differences
from stages.report.evaluation import Evaluation, evaluation_files, read_evaluation, title
from stages.report.section import Section, show_charts, show_long_table, show_table
from stages.report.table import NONE, Table, best_of_columns, best_of_rows, share

MEASURES = ["nDCG@10", "MRR@10", "Recall@100"]


def section() -> Section:
    """Return tables and bar charts of all systems, baselines first."""
    runs = load_params("runs", Runs).root
    evaluation = read_evaluation(evaluation_files(runs))
    by_domain = results_by_domain(evaluation)
    batches = {name: run.batches for name, run in runs.items()}
    return Section(
        id="results",
        title="Results",
        intro="Higher is better in every column, and the best value is bold. What a run gains over the model it starts "
        "from (“before training”) comes from training; what it gains over the run on random batches comes from the "
        "batches. A difference of less than two standard errors may be chance.",
        parts=[
            show_table(
                differences_table(read_differences()),
                "What each run gains in nDCG@10 ± standard error, paired by query; the number of queries in brackets",
            ),
            show_table(results_table(evaluation), _caption(evaluation)),
            show_charts({title(name): _bars(evaluation, name, batches) for name in evaluation.collections}),
            *([show_long_table(by_domain, "nDCG@10 on held-out queries by domain")] if by_domain.rows else []),
        ],
    )


def results_table(evaluation: Evaluation) -> Table:
    """Return one row per system, with three measures per collection."""
    rows = []
    for system in evaluation.systems:
        cells = [system]
        for name in evaluation.collections:
            scores = evaluation.scores.get((name, system))
            cells += [share(scores.ndcg), share(scores.mrr), share(scores.recall)] if scores else [NONE] * 3
        rows.append(cells)
    counts = {name: f" ({count:,})" for name, count in evaluation.queries.items()}
    return Table(
        header=["System", *MEASURES * len(evaluation.collections)],
        groups=[("", 1), *((title(name) + counts.get(name, ""), 3) for name in evaluation.collections)],
        rows=rows,
        best=best_of_columns(rows),
    )


def results_by_domain(evaluation: Evaluation) -> Table:
    """Return one row per domain, with the held-out nDCG@10 of each system."""
    rows = []
    for domain in sorted({domain for domain, _ in evaluation.domains}):
        values = [evaluation.domains.get((domain, system)) for system in evaluation.systems]
        rows.append([domain, *(NONE if value is None else share(value) for value in values)])
    return Table(header=["Domain", *evaluation.systems], rows=rows, best=best_of_rows(rows))


def bars_height(scores: Mapping[str, float]) -> float:
    """Return the height in inches that ``draw_bars`` needs."""
    return 0.6 + 0.34 * len(scores)


def draw_bars(axes: Axes, scores: Mapping[str, float], batches: Mapping[str, str]) -> None:
    """Draw a bar with the nDCG@10 of each system, in the colour of the batches it was trained on."""
    colours = [charts.colour(batches.get(system)) for system in scores]
    bars = axes.barh(range(len(scores)), list(scores.values()), color=colours, height=0.68)
    axes.bar_label(bars, fmt=share, padding=4)
    axes.set_yticks(range(len(scores)), list(scores))
    axes.invert_yaxis()
    axes.set(xlabel="nDCG@10", xlim=(0, 1.15 * max(scores.values()) or 1))
    axes.grid(visible=False)


def _bars(evaluation: Evaluation, collection: str, batches: Mapping[str, str]) -> Markup:
    scores = evaluation.ndcg(collection)
    description = f"Bar chart of the nDCG@10 of each system: {title(collection)}."
    return charts.chart(lambda axes: draw_bars(axes, scores, batches), description, (5.0, bars_height(scores)))


def _caption(evaluation: Evaluation) -> str:
    missing = {name: scores.missing for (name, _), scores in evaluation.scores.items() if scores.missing}
    told = "".join(
        f"; {count:,} relevant documents of {name} are not in its corpus and count as not found"
        for name, count in missing.items()
    )
    return f"Retrieval by system, with the number of queries in brackets{told}"
