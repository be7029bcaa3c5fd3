"""Outcome: what came of it, in pictures. How quality grows with the steps of training, and what every run gains."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from pydantic import Field

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from batchwright.formats.runs import Run, Runs
from stages.report import charts
from stages.report.page import Section, show_charts, show_table
from stages.report.records import Record, read_rows
from stages.report.scores import Difference, read_differences, title
from stages.report.table import NONE, Table, share

RANDOM = "random batches"
"""The reference, in ``results/compare.tsv``, whose end other runs should reach earlier."""


class DevStep(Record):
    """One row of ``results/train/RUN-dev.tsv``."""

    step: int
    ndcg: float = Field(alias="ndcg@10")


_OF_CURVES = (
    "Quality by step is nDCG@10 on dev queries, which neither training nor the results have seen; step 0 is before "
    "training, and a curve is the first seed's."
)
_OF_GAINS = (
    "The dots are gains on the first collection with their 95% intervals, over queries and, where a run has several, "
    "seeds: what crosses the line at 0 may be chance."
)
Curves = Mapping[str, Sequence[DevStep]]
"""The dev curves of runs that were watched."""


def section() -> Section | None:
    """Return quality by step and gains as charts, and the steps that runs take to where random batches end."""
    runs = load_params("runs", Runs).root
    curves = {name: curve for name in runs if (curve := _read_dev_curve(name))}
    differences = read_differences()
    if not curves and not differences:
        return None
    controls = {row.system: row.reference for row in differences if row.over == RANDOM}
    table = steps_table(curves, controls)
    return Section(
        id="outcome",
        title="What came of it",
        intro=" ".join([*([_OF_CURVES] if curves else []), *([_OF_GAINS] if differences else [])]),
        parts=[
            show_charts(_quality(curves, runs) | _gains(differences, runs)),
            *([show_table(table, "Steps to reach what random batches reach at their end")] if table.rows else []),
        ],
    )


def _read_dev_curve(run: str) -> list[DevStep]:
    """Read the measures of a run in training; there are none if it was not watched."""
    return read_rows(DevStep, RESULTS / "train" / f"{run}-dev.tsv", made_by="train")


def steps_table(curves: Curves, controls: Mapping[str, str]) -> Table:
    """Return one row per run that has a control: both ends, and the first step at the control's end or above."""
    rows = []
    for run, control in controls.items():
        if run in curves and control in curves:
            end = curves[control][-1]
            reached = steps_to(curves[run], end.ndcg)
            cells = [NONE, NONE] if reached is None else [f"{reached:,}", share(reached / end.step)]
            rows.append([run, share(curves[run][-1].ndcg), control, share(end.ndcg), f"{end.step:,}", *cells])
    header = ["Run", "at its end", "Random batches", "at their end", "their steps", "steps to there", "share of theirs"]
    return Table(header=header, rows=rows, words=frozenset({0, 2}))


def steps_to(curve: Sequence[DevStep], ndcg: float) -> int | None:
    """Return the first measured step with this nDCG@10 or more, None if there is none."""
    return next((row.step for row in curve if row.ndcg >= ndcg), None)


def _quality(curves: Curves, runs: Mapping[str, Run]) -> dict[str, Markup]:
    """Return a chart per variant, by title, with one line per run."""
    variants = dict.fromkeys(runs[name].variant for name in curves)
    return {f"Quality by step, {variant}": _quality_of(variant, curves, runs) for variant in variants}


def _quality_of(variant: str, curves: Curves, runs: Mapping[str, Run]) -> Markup:
    batches = {name: runs[name].batches for name in curves if runs[name].variant == variant}

    def draw(axes: Axes) -> None:
        axes.set(xlabel="step", ylabel="nDCG@10, dev queries")
        for name, style in zip(batches, charts.line_styles(batches.values()), strict=True):
            steps, ndcg = [row.step for row in curves[name]], [row.ndcg for row in curves[name]]
            colour = charts.colour(batches[name])
            axes.plot(steps, ndcg, style, color=colour, linewidth=2, marker="o", markersize=3, label=name)
        charts.legend_above(axes)

    return charts.chart(
        draw, f"Curves of nDCG@10 on dev queries in the training of {variant}: {' and '.join(batches)}."
    )


def _gains(differences: Sequence[Difference], runs: Mapping[str, Run]) -> dict[str, Markup]:
    """Return a chart of gains on the first collection, by title, for each kind of reference; random batches first."""
    first = [row for row in differences if row.collection == differences[0].collection]
    drawn = {}
    for over in sorted({row.over for row in first}, key=lambda over: (over != RANDOM, over)):
        rows = [row for row in first if row.over == over]
        gains = {_named(row): (row.difference, row.error) for row in rows}
        colours = [charts.colour(runs[row.system].batches) for row in rows]
        heading = f"Gain over {over}, {title(first[0].collection)}"
        drawn[heading] = charts.intervals(gains, colours, f"{heading}: {', '.join(gains)}.")
    return drawn


def _named(row: Difference) -> str:
    return f"{row.system}, {row.seeds} seeds" if row.seeds > 1 else row.system
