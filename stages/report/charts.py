"""Charts: their colours, line styles and kinds, and figures as SVG with the same bytes every time."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from stages.report.table import share, signed

SIZE = (5.0, 2.9)
DASHES = ("-", "--", ":", "-.")
_INK = "#010203"
"""Placeholder for the text colour, which depends on where the figure is shown."""
_INK_ON_WHITE = "#24292f"
_COLOURS = {"contextual": "#3b82d6", "random": "#8b8f98"}
_OTHERS = "#c4622d"
_LEGEND_WIDTH = 52
"""Number of characters that fit on one line above a chart."""

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": _INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": _INK,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": _INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.size": 10.5,
    "grid.alpha": 0.15,
    "grid.color": _INK,
    "legend.frameon": False,
    "lines.color": _INK,
    "svg.fonttype": "none",
    "text.color": _INK,
    "text.parse_math": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "ytick.left": False,
}
"""Matplotlib settings for drawing and saving figures."""


def colour(batches: str | None) -> str:
    """Return the colour of these batches and of models trained on them; grey for systems that were not trained."""
    return _COLOURS["random"] if batches is None else _COLOURS.get(batches, _OTHERS)


def line_styles(batches: Iterable[str]) -> list[str]:
    """Return a line style for each run, given its batches: it tells runs of one colour apart."""
    drawn: Counter[str] = Counter()
    styles = []
    for name in map(colour, batches):
        styles.append(DASHES[drawn[name] % len(DASHES)])
        drawn[name] += 1
    return styles


def chart(draw: Callable[[Axes], None], description: str, size: tuple[float, float] = SIZE) -> Markup:
    """Return what ``draw`` draws as inline SVG."""
    with mpl.rc_context(STYLE):
        figure = Figure(size, layout=ConstrainedLayoutEngine(w_pad=0.12))  # a browser's font may be wider
        draw(figure.add_subplot())
        return _inline(figure, description)


def lines(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], across: str, title: str) -> Markup:
    """Draw one line per curve, given its positions on the axis ``across`` and its values there."""

    def draw(axes: Axes) -> None:
        axes.set(xlabel=across)
        for (name, (positions, values)), dashes in zip(curves.items(), DASHES, strict=False):
            axes.plot(positions, values, dashes, color=colour("contextual"), linewidth=2, label=name)
        legend_above(axes)

    return chart(draw, f"Curves of {title} by {across}.")


def bars(ndcg: Mapping[str, float], colours: Sequence[str], title: str) -> Markup:
    """Draw one bar per system, given its nDCG@10, from top to bottom, each in its colour."""

    def draw(axes: Axes) -> None:
        drawn = axes.barh(range(len(ndcg)), list(ndcg.values()), color=colours, height=0.68)
        axes.bar_label(drawn, fmt=share, padding=4)
        axes.set_yticks(range(len(ndcg)), list(ndcg))
        axes.invert_yaxis()
        axes.set(xlabel="nDCG@10", xlim=(0, 1.15 * max(ndcg.values()) or 1))
        axes.grid(visible=False)

    return chart(draw, title, (SIZE[0], 0.6 + 0.34 * len(ndcg)))


def intervals(gains: Mapping[str, tuple[float, float]], colours: Sequence[str], title: str) -> Markup:
    """Draw one dot per gain, given with its standard error, and a line over the 95% interval; the zero line is drawn.

    ``gains`` are by name, from top to bottom, and ``colours`` are theirs.
    """

    def draw(axes: Axes) -> None:
        rows = range(len(gains))
        for row, (mean, error), colour in zip(rows, gains.values(), colours, strict=True):
            axes.errorbar(mean, row, xerr=1.96 * error, fmt="o", color=colour, linewidth=2, markersize=6)
            end = (max(mean + 1.96 * error, 0), row)
            axes.annotate(signed(mean, error), end, (6, 0), textcoords="offset points", va="center")
        axes.axvline(0, color=mpl.rcParams["text.color"], linewidth=1)
        axes.set_yticks(rows, list(gains))
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


def standalone(figure: Figure) -> str:
    """Return the figure as a standalone SVG file on a white background."""
    return _svg(figure, "figure", transparent=False).replace(_INK, _INK_ON_WHITE)


def _inline(figure: Figure, description: str) -> Markup:
    """Return the figure for use in a page: as wide as its container, in the page's font and text colour, ids unique."""
    svg = _svg(figure, description, transparent=True).replace(_INK, "currentColor").replace("xlink:href", "href")
    view, content = re.findall(r'<svg .*?(viewBox="[^"]*")[^>]*>(.*)', svg, re.DOTALL)[0]
    content = re.sub(r' id="(?!\w[0-9a-f]{10}")[^"]*"', "", content)
    return Markup('<svg role="img" aria-label="{}" {}>{}').format(description, Markup(view), Markup(content))


def _svg(figure: Figure, salt: str, *, transparent: bool) -> str:
    """Return the figure as SVG; ``salt`` makes its ids differ from those of other figures on the page."""
    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=no_metadata, transparent=transparent)
    return text.getvalue()
