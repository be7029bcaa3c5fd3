"""Write figures as SVG, with the same bytes every time."""

import re
from io import StringIO
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

_INK = "#010203"
"""Placeholder for the text colour, which depends on where the figure is shown."""
_INK_ON_WHITE = "#24292f"

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


def inline(figure: Figure, description: str) -> Markup:
    """Return the figure for use in a page: as wide as its container, in the page's font and text colour, ids unique."""
    svg = _save(figure, description, transparent=True).replace(_INK, "currentColor").replace("xlink:href", "href")
    view, content = re.findall(r'<svg .*?(viewBox="[^"]*")[^>]*>(.*)', svg, re.DOTALL)[0]
    content = re.sub(r' id="(?!\w[0-9a-f]{10}")[^"]*"', "", content)
    return Markup('<svg role="img" aria-label="{}" {}>{}').format(description, Markup(view), Markup(content))


def standalone(figure: Figure) -> str:
    """Return the figure as a standalone SVG file on a white background."""
    return _save(figure, "figure", transparent=False).replace(_INK, _INK_ON_WHITE)


def _save(figure: Figure, salt: str, *, transparent: bool) -> str:
    """Return the figure as SVG; ``salt`` makes its ids differ from those of other figures on the page."""
    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=nothing, transparent=transparent)
    return text.getvalue()
