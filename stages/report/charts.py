"""The report's charts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from formats.atomic import atomic_file
from stages.report.collect import Step
from stages.report.svg import STYLE, inline, standalone
from stages.report.table import share

COLOURS = {"contextual": "#3b82d6", "random": "#8b8f98"}
_OTHERS = "#c4622d"
_SIZE = (5.0, 2.9)
_BINS = 24


def cluster_sizes(sizes: NDArray[np.int64], wanted: int) -> Markup:
    """How many clusters have how many pairs; ``sizes`` ``(K,)`` are of all domains."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure(_SIZE)
        axes.set(xlabel="pairs in a cluster", ylabel="clusters")
        axes.hist(sizes, bins=_bins(sizes), color=COLOURS["contextual"], alpha=0.65, histtype="stepfilled")
        on_axis = axes.get_xaxis_transform()
        axes.axvline(wanted, color=mpl.rcParams["text.color"], linewidth=1, linestyle="--")
        axes.text(wanted, 1.01, f"cluster_size {wanted:,}", transform=on_axis, ha="center", va="bottom")
        extremes = [sizes.min(), sizes.max()]
        axes.plot(extremes, [0, 0], "^", color=mpl.rcParams["text.color"], clip_on=False, transform=on_axis)
        return inline(figure, "Histogram of the number of pairs in a cluster.")


def hardness(batches: Mapping[str, NDArray[np.float64]]) -> Markup:
    """How many batches are how hard, by policy."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure(_SIZE)
        _draw_hardness(axes, batches)
        return inline(figure, "Histograms of the hardness of contextual and of random batches.")


def result_bars(scores: Mapping[str, float], title: str) -> Markup:
    """nDCG@10 of each system."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure((5.0, 0.6 + 0.34 * len(scores)))
        _draw_results(axes, scores)
        return inline(figure, f"Bars of nDCG@10 of each system: {title}.")


def curves(variant: str, runs: Mapping[str, Sequence[Step]], measure: str) -> Markup:
    """``loss`` or ``accuracy`` by step and policy: each step faintly, the moving mean on top."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure(_SIZE)
        axes.set(xlabel="step")
        for policy, steps in runs.items():
            numbers = [step.step for step in steps]
            values = np.array([getattr(step, measure) for step in steps])
            colour = COLOURS.get(policy, _OTHERS)
            axes.plot(numbers, values, color=colour, linewidth=0.7, alpha=0.4)
            axes.plot(numbers, _smooth(values), color=colour, linewidth=2, label=policy)
        figure.legend(loc="outside upper left", ncols=len(runs))  # above: never over a line
        return inline(figure, f"Curves of {measure} in the training of {variant}, on {' and on '.join(runs)} batches.")


def lines(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], across: str, title: str, *, log: bool = False
) -> Markup:
    """Each curve's values against what stands ``across``."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure(_SIZE)
        axes.set(xlabel=across, xscale="log" if log else "linear")
        if log:
            axes.xaxis.set_major_formatter("{x:,.0f}")  # the default one writes powers in TeX
        for (name, (places, values)), style in zip(curves.items(), ("-", "--", ":", "-."), strict=False):
            axes.plot(places, values, style, color=COLOURS["contextual"], linewidth=2, label=name)
        figure.legend(loc="outside upper left", ncols=len(curves))
        return inline(figure, f"Curves of {title} by {across}.")


def write_picture(file: Path, batches: Mapping[str, NDArray[np.float64]], scores: Mapping[str, float]) -> None:
    """One SVG for use elsewhere: hardness of the batches and nDCG@10 of the systems."""
    with mpl.rc_context(STYLE):
        figure = Figure((10.0, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_hardness(left, batches)
        left.set_title("How hard the batches are")
        _draw_results(right, scores)
        right.set_title("How well the models retrieve")
        with atomic_file(file) as temporary:
            temporary.write_text(standalone(figure), encoding="utf-8")


def _figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(size, layout=ConstrainedLayoutEngine(w_pad=0.12))  # a browser's letters may be wider
    return figure, figure.add_subplot()


def _draw_hardness(axes: Axes, batches: Mapping[str, NDArray[np.float64]]) -> None:
    bins = _bins(np.concatenate(list(batches.values())))
    for policy, values in batches.items():
        axes.hist(values, bins=bins, color=COLOURS[policy], alpha=0.65, label=policy, histtype="stepfilled")
    axes.set(xlabel="hardness of a batch", ylabel="batches")
    axes.legend()


def _draw_results(axes: Axes, scores: Mapping[str, float]) -> None:
    colours = [COLOURS["contextual" if "contextual" in system else "random"] for system in scores]
    bars = axes.barh(range(len(scores)), list(scores.values()), color=colours, height=0.68)
    axes.bar_label(bars, fmt=share, padding=4)
    axes.set_yticks(range(len(scores)), list(scores))
    axes.invert_yaxis()
    axes.set(xlabel="nDCG@10", xlim=(0, 1.15 * max(scores.values()) or 1))
    axes.grid(visible=False)


def _bins(values: NDArray[np.int64] | NDArray[np.float64]) -> list[float]:
    """Edges of bins over all values; whole numbers, such as sizes, stand in the middle of a bin or share one."""
    low, high = float(values.min()), float(values.max())
    if np.issubdtype(values.dtype, np.integer):
        width = np.ceil((high - low + 1) / _BINS)
        edges = np.arange(low - 0.5, high + width, width)
    else:
        edges = np.linspace(low, max(high, low + 1e-3), _BINS + 1)
    return [float(edge) for edge in edges]


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centred moving mean over a tenth of the steps, over fewer at the ends."""
    window = np.ones(2 * (len(values) // 20) + 1)
    return np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")
