"""``python -m docs.picture``: draws README's picture, ``docs/results.svg``."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from batchwright.core.atomic import atomic_file
from batchwright.core.command import command
from batchwright.core.paths import RESULTS
from batchwright.core.results import read_tsv
from stages.report.charts import colour
from stages.report.svg import STYLE, standalone

CURVES = {"random": ("random batches", "static-random"), "contextual": ("Batchwright's batches", "static")}
"""By packing policy: the label of its curve, and the run."""
PICTURE = Path("docs/results.svg")


def main() -> str:
    """Write nDCG@10 on dev queries by training step, on both kinds of batches."""
    with mpl.rc_context(STYLE):
        figure = Figure((6.4, 3.2), layout="constrained")
        _draw(figure.add_subplot())
        picture = standalone(figure)
    with atomic_file(PICTURE) as temporary:
        temporary.write_text(picture, encoding="utf-8")
    return f"{PICTURE} written"


def _draw(axes: Axes) -> None:
    ends = {}
    for policy, (label, run) in CURVES.items():
        rows = read_tsv(RESULTS / "train" / f"{run}-dev.tsv", made_by="train")
        steps, values = ([float(row[name]) for row in rows] for name in ("step", "ndcg@10"))
        axes.plot(steps, values, color=colour(policy), linewidth=2, label=label)
        ends[policy] = values[-1]
    axes.axhline(ends["random"], color=colour("random"), linewidth=1, linestyle=":")
    axes.set(xlabel="training step", ylabel="nDCG@10, dev queries", ylim=(0, None), xlim=(0, None))
    axes.legend(loc="lower right")


if __name__ == "__main__":
    command(
        "docs.picture",
        "Draws README's picture, docs/results.svg, from the default run.",
        "python -m docs.picture",
    )
