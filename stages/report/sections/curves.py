"""Curves: how the training of every run went."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from numpy.typing import NDArray

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from batchwright.formats.runs import Run, Runs
from stages.report import charts
from stages.report.records import Record, read_rows
from stages.report.section import Section, show_charts

MEASURES = ("loss", "accuracy", "z", "missed_positives")


class Step(Record):
    """One row of ``results/train/RUN.tsv``; only XTR has ``z`` and ``missed_positives``."""

    step: int
    loss: float
    accuracy: float
    z: float | None = None
    missed_positives: float | None = None


def section() -> Section:
    """Return charts by variant, with one line per run."""
    runs = load_params("runs", Runs).root
    return losses({name: read_curve(name) for name in runs}, runs)


def losses(curves: Mapping[str, Sequence[Step]], runs: Mapping[str, Run]) -> Section:
    """Return the charts of these curves by variant."""
    variants = dict.fromkeys(runs[name].variant for name in curves)
    own = {variant: {name: curves[name] for name in curves if runs[name].variant == variant} for variant in variants}
    return Section(
        id="curves",
        title="Loss curves",
        intro="Thin lines are single steps, thick lines their moving mean. Harder batches mean a higher loss and a "
        "lower accuracy for the same model, so compare the shapes of the curves here, and compare the "
        "models in the results.",
        parts=[show_charts(_charts(variant, own[variant], runs), heading=variant) for variant in variants],
    )


def read_curve(run: str) -> list[Step]:
    """Read the training steps of a run."""
    return read_rows(Step, RESULTS / "train" / f"{run}.tsv", made_by="train")


def _charts(variant: str, curves: Mapping[str, Sequence[Step]], runs: Mapping[str, Run]) -> dict[str, Markup]:
    """Return one chart per measure that all curves have."""
    batches = {name: runs[name].batches for name in curves}
    return {
        measure.replace("_", " ").capitalize(): charts.chart(
            partial(_draw, curves=curves, batches=batches, measure=measure),
            f"Curves of {measure} in the training of {variant}: {' and '.join(curves)}.",
        )
        for measure in MEASURES
        if all(getattr(step, measure) is not None for steps in curves.values() for step in steps)
    }


def _draw(axes: Axes, curves: Mapping[str, Sequence[Step]], batches: Mapping[str, str], measure: str) -> None:
    axes.set(xlabel="step")
    styles = charts.dashes(batches[run] for run in curves)
    for (run, steps), dashes in zip(curves.items(), styles, strict=True):
        numbers = [step.step for step in steps]
        values = np.array([getattr(step, measure) for step in steps])
        colour = charts.colour(batches[run])
        axes.plot(numbers, values, color=colour, linewidth=0.7, alpha=0.4)
        axes.plot(numbers, _smooth(values), dashes, color=colour, linewidth=2, label=run)
    charts.legend_above(axes)


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the centred moving mean over a tenth of the steps, or over fewer at the ends."""
    window = np.ones(2 * (len(values) // 20) + 1)
    return np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")
