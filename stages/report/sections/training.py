"""Training: the curves of every run, and whether the pre-trained encoders learnt what they should."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pydantic import RootModel

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from batchwright.formats.runs import Run, Runs
from stages.report import charts
from stages.report.page import Section, show_charts
from stages.report.records import Record, read_rows

MEASURES = ("loss", "accuracy", "z", "missed_positives")


class Step(Record):
    """One row of ``results/train/RUN.tsv``; only XTR has ``z`` and ``missed_positives``."""

    step: int
    loss: float
    accuracy: float
    z: float | None = None
    missed_positives: float | None = None


Curves = Mapping[str, Sequence[Step]]
"""The steps of each run."""


def losses() -> Section:
    """Return charts by variant, with one line per run."""
    runs = load_params("runs", Runs).root
    curves = {name: read_rows(Step, RESULTS / "train" / f"{name}.tsv", made_by="train") for name in runs}
    by_variant: dict[str, dict[str, Sequence[Step]]] = {}
    for name, run in runs.items():
        by_variant.setdefault(run.variant, {})[name] = curves[name]
    return Section(
        id="curves",
        title="Loss curves",
        intro="Thin lines are single steps, thick lines their moving mean. Harder batches mean a higher loss and a "
        "lower accuracy for the same model, so compare the shapes of the curves here, and compare the "
        "models in the results.",
        parts=[
            show_charts(_charts_of_variant(variant, curves, runs), heading=variant)
            for variant, curves in by_variant.items()
        ],
    )


def _charts_of_variant(variant: str, curves: Curves, runs: Mapping[str, Run]) -> dict[str, Markup]:
    """Return one chart per measure that all curves have."""
    batches = {name: runs[name].batches for name in curves}
    return {
        measure.replace("_", " ").capitalize(): charts.chart(
            partial(_draw_measure, curves=curves, batches=batches, measure=measure),
            f"Curves of {measure} in the training of {variant}: {' and '.join(curves)}.",
        )
        for measure in MEASURES
        if all(getattr(step, measure) is not None for steps in curves.values() for step in steps)
    }


def _draw_measure(axes: Axes, curves: Curves, batches: Mapping[str, str], measure: str) -> None:
    axes.set(xlabel="step")
    for (run, steps), style in zip(curves.items(), charts.line_styles(batches.values()), strict=True):
        numbers = [step.step for step in steps]
        values = np.array([getattr(step, measure) for step in steps])
        colour = charts.colour(batches[run])
        axes.plot(numbers, values, color=colour, linewidth=0.7, alpha=0.4)
        axes.plot(numbers, _smooth(values), style, color=colour, linewidth=2, label=run)
    charts.legend_above(axes)


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the centred moving mean over a tenth of the steps, or over fewer at the ends."""
    window = np.ones(2 * (len(values) // 20) + 1)
    return np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")


class Pretrained(RootModel[dict[str, dict[str, Any]]]):
    """Group ``pretrain``: an entry for each encoder that is pre-trained."""


class Validation(Record):
    """Means on held-out text, in nats per token; without a decoder, ``decoder`` and ``h0_gap`` are 0."""

    step: int
    mlm: float
    decoder: float = 0
    h0_gap: float = 0


class AtLength(Record):
    """Mean cosine of the CLS states of two random sequences of this many tokens."""

    length: int
    cosine: float


class AtPosition(Record):
    """Mean cosine of the CLS state and the decoder's state at a position."""

    position: int
    cosine: float


def pretraining() -> Section | None:
    """Return charts of every pre-training."""
    names = load_params("pretrain", Pretrained).root
    if not names:
        return None
    return Section(
        id="pretraining",
        title="Pre-training",
        intro="The h0 gap is how much the decoder's loss grows if every text gets another text's CLS state. As long as "
        "it is 0, the decoder has not learnt to read that state. If random texts are close to each other, search "
        "cannot tell them apart.",
        parts=[show_charts(_charts_of_encoder(name), heading=name) for name in names],
    )


def _charts_of_encoder(name: str) -> dict[str, Markup]:
    """Return charts by title, without those of the decoder if there was none."""
    folder = RESULTS / "pretrain"
    validations = read_rows(Validation, folder / f"{name}-validation.tsv", made_by="pretrain")
    by_length = read_rows(AtLength, folder / f"{name}-length.tsv", made_by="pretrain")
    by_position = read_rows(AtPosition, folder / f"{name}-position.tsv", made_by="pretrain")

    def draw(across: str, places: Sequence[int], values: Mapping[str, Sequence[float]]) -> Markup:
        curves = {label: (places, curve) for label, curve in values.items()}
        return charts.lines(curves, across, f"{' and '.join(curves)} in pre-training {name}")

    steps = [row.step for row in validations]
    loss = {"encoder (MLM)": [row.mlm for row in validations]}
    decoder = {"decoder": [row.decoder for row in validations]} if by_position else {}
    drawn = {"Loss on held-out text, nats per token": draw("step", steps, loss | decoder)}
    if by_position:
        drawn["h0 gap, nats per token"] = draw("step", steps, {"h0 gap": [row.h0_gap for row in validations]})
    lengths = [row.length for row in by_length]
    drawn["Cosine of two random texts"] = draw("tokens", lengths, {"mean": [row.cosine for row in by_length]})
    if by_position:
        positions = [row.position for row in by_position]
        cosines = {"mean": [row.cosine for row in by_position]}
        drawn["Cosine of CLS and decoder state"] = draw("position", positions, cosines)
    return drawn
