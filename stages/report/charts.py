"""Common parts of charts: size, colours, legend and line charts."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from stages.report.svg import STYLE, inline
from stages.report.table import signed

SIZE = (5.0, 2.9)
DASHES = ("-", "--", ":", "-.")

_COLOURS = {"contextual": "#3b82d6", "random": "#8b8f98"}
_OTHERS = "#c4622d"
_BINS = 24
_LEGEND_WIDTH = 52
"""Number of characters that fit on one line above a chart."""


def colour(batches: str | None) -> str:
    """Return the colour of these batches and of models trained on them; grey for systems that were not trained."""
    return _COLOURS["random"] if batches is None else _COLOURS.get(batches, _OTHERS)


def dashes(batches: Iterable[str]) -> list[str]:
    """Return a line style for each run, given its batches: it tells runs of one colour apart."""
    drawn: Counter[str] = Counter()
    styles = []
    for each in map(colour, batches):
        styles.append(DASHES[drawn[each] % len(DASHES)])
        drawn[each] += 1
    return styles


def chart(draw: Callable[[Axes], None], description: str, size: tuple[float, float] = SIZE) -> Markup:
    """Return what ``draw`` draws as inline SVG."""
    with mpl.rc_context(STYLE):
        figure = Figure(size, layout=ConstrainedLayoutEngine(w_pad=0.12))  # a browser's font may be wider
        draw(figure.add_subplot())
        return inline(figure, description)


def lines(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], across: str, title: str, *, log: bool = False
) -> Markup:
    """Draw one line per curve, given its positions on the axis ``across`` and its values there."""

    def draw(axes: Axes) -> None:
        axes.set(xlabel=across, xscale="log" if log else "linear")
        if log:
            axes.xaxis.set_major_formatter("{x:,.0f}")  # the default formatter writes powers in TeX
        for (name, (places, values)), dashes in zip(curves.items(), DASHES, strict=False):
            axes.plot(places, values, dashes, color=colour("contextual"), linewidth=2, label=name)
        legend_above(axes)

    return chart(draw, f"Curves of {title} by {across}.")


def intervals(gains: Mapping[str, tuple[float, float]], colours: Sequence[str], title: str) -> Markup:
    """Draw one dot per gain, given with its standard error, and a line over the 95% interval; the zero line is drawn.

    ``gains`` are by name, from top to bottom, and ``colours`` are theirs.
    """

    def draw(axes: Axes) -> None:
        places = range(len(gains))
        for place, (mean, error), colour in zip(places, gains.values(), colours, strict=True):
            axes.errorbar(mean, place, xerr=1.96 * error, fmt="o", color=colour, linewidth=2, markersize=6)
            end = (max(mean + 1.96 * error, 0), place)
            axes.annotate(signed(mean, error), end, (6, 0), textcoords="offset points", va="center")
        axes.axvline(0, color=mpl.rcParams["text.color"], linewidth=1)
        axes.set_yticks(places, list(gains))
        low = min(0, *(mean - 2 * error for mean, error in gains.values()))
        high = max(0, *(mean + 2 * error for mean, error in gains.values()))
        axes.set(ylim=(len(gains) - 0.5, -0.5), xlim=(low, high + 0.45 * (high - low)), xlabel="nDCG@10")
        axes.grid(visible=False)

    return chart(draw, title, (SIZE[0], 0.8 + 0.34 * len(gains)))


def legend_above(axes: Axes) -> None:
    """Put a legend above the axes, where it never covers a line."""
    handles, labels = axes.get_legend_handles_labels()
    longest = max(len(label) for label in labels) + 6  # for the line sample and the spacing
    columns = min(len(labels), max(1, _LEGEND_WIDTH // longest))
    axes.figure.legend(handles, labels, loc="outside upper left", ncols=columns)


def bins(values: NDArray[np.int64] | NDArray[np.float64]) -> list[float]:
    """Return the edges of bins over all values; each integer is centred in its bin, unless several share one."""
    low, high = float(values.min()), float(values.max())
    if np.issubdtype(values.dtype, np.integer):
        width = np.ceil((high - low + 1) / _BINS)
        edges = np.arange(low - 0.5, high + width, width)
    else:
        edges = np.linspace(low, max(high, low + 1e-3), _BINS + 1)
    return [float(edge) for edge in edges]
