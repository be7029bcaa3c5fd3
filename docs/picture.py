"""``python -m docs.picture``: draws README's picture, ``docs/results.svg``."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from batchwright.core.atomic import atomic_file
from batchwright.core.command import command
from docs.schedule import Length, read_lengths
from stages.report.charts import colour
from stages.report.svg import STYLE, standalone

EXPERIMENTS = Path("experiments/batches")
FILES = [EXPERIMENTS / "quality.tsv", EXPERIMENTS / "quality_longer.tsv"]
PICTURE = Path("docs/results.svg")


def main() -> str:
    """Write nDCG@10 by epochs for both kinds of batches."""
    with mpl.rc_context(STYLE):
        figure = Figure((6.4, 3.2), layout="constrained")
        _draw(figure.add_subplot(), read_lengths(FILES))
        picture = standalone(figure)
    with atomic_file(PICTURE) as temporary:
        temporary.write_text(picture, encoding="utf-8")
    return f"{PICTURE} written"


def _draw(axes: Axes, lengths: Sequence[Length]) -> None:
    epochs = [length.epochs for length in lengths]
    schedule, random = [length.schedule for length in lengths], [length.random for length in lengths]
    for label, batches, values in (
        ("Batchwright's schedule", "contextual", schedule),
        ("random batches", "random", random),
    ):
        means, spreads = [statistics.mean(each) for each in values], [statistics.stdev(each) for each in values]
        axes.errorbar(epochs, means, spreads, color=colour(batches), linewidth=2, marker="o", capsize=3, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(epochs, [str(each) for each in epochs])
    axes.set(xlabel="epochs of training", ylabel="nDCG@10, held-out queries")
    axes.legend(loc="lower right")


if __name__ == "__main__":
    command(
        "docs.picture",
        "Draws README's picture, docs/results.svg, from the experiments.",
        "python -m docs.picture",
    )
