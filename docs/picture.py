"""``python -m docs.picture``: draws README's picture, ``docs/results.svg``."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from batchwright.core.atomic import atomic_file
from batchwright.core.command import command
from batchwright.core.files import read_tsv
from stages.report.charts import STYLE, colour, standalone

CURVES = Path("experiments/rivals/static-curves.tsv")
SET, RANDOM = "medquad", "random"
LINES = {
    RANDOM: ("random batches", "random", "-"),
    "random, our loss": ("random batches, Batchwright's loss", "random", "--"),
    "ours": ("Batchwright's batches and loss", "contextual", "-"),
}
"""By arm: the label of its curve, the kind of batches whose colour it has, and its dashes."""
PICTURE = Path("docs/results.svg")

Points = tuple[list[float], list[float]]
"""Steps and nDCG@10."""


def main() -> str:
    """Write nDCG@10 by training step."""
    with mpl.rc_context(STYLE):
        figure = Figure((6.4, 3.2), layout="constrained")
        _draw(figure.add_subplot())
        picture = standalone(figure)
    with atomic_file(PICTURE) as temporary:
        temporary.write_text(picture, encoding="utf-8")
    return f"{PICTURE} written"


def _draw(axes: Axes) -> None:
    rows = [row for row in read_tsv(CURVES, made_by="experiments.rivals.summary") if row["set"] == SET]
    for arm, (label, kind, dashes) in LINES.items():
        steps, ndcg = _points(rows, arm)
        axes.plot(steps, ndcg, dashes, color=colour(kind), linewidth=2, label=label)
    axes.axhline(_points(rows, RANDOM)[1][-1], color=colour("random"), linewidth=1, linestyle=":")
    axes.set(xlabel="training step", ylabel="nDCG@10, held-out queries", ylim=(0.5, None), xlim=(0, None))
    axes.legend(loc="lower right")


def _points(rows: list[dict[str, str]], arm: str) -> Points:
    own = [row for row in rows if row["arm"] == arm]
    return [float(row["step"]) for row in own], [float(row["ndcg"]) for row in own]


if __name__ == "__main__":
    command(
        "docs.picture",
        "Draws README's picture, docs/results.svg, from the runs of experiments.rivals.",
        "python -m docs.picture",
    )
