"""``python -m docs.picture``: draws README's picture and the one that explains our loss."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from batchwright.core.atomic import atomic_file
from batchwright.core.command import command
from batchwright.core.files import read_tsv
from stages.report.charts import STYLE, colour, standalone

GAINS, LESSONS = Path("experiments/rivals/static.tsv"), Path("experiments/rivals/lessons.tsv")
WAYS = {
    "random, our loss": ("random batches, Batchwright's loss", "random", "o"),
    "ours": ("Batchwright's batches and loss", "contextual", "D"),
}
"""By arm: the label of its gains, the kind of batches whose colour they have, and their marker."""
LOSSES = {"InfoNCE": ("InfoNCE", "random"), "our loss": ("Batchwright's loss", "contextual")}
"""By column: the label of its lines, and the kind of batches whose colour they have."""
DASHES = ("-", "--")
"""Of the lines of each set."""
DOCUMENTS = (4, 8, 16, 32, 64)
"""What the axis of lessons names."""
Row = dict[str, str]


def main() -> str:
    """Write both pictures."""
    for file, (rows, draw) in PICTURES.items():
        with mpl.rc_context(STYLE):
            figure = Figure((6.4, 3.6), layout="constrained")
            draw(figure.add_subplot(), read_tsv(rows, made_by=rows.stem))
            picture = standalone(figure)
        with atomic_file(file) as temporary:
            temporary.write_text(picture, encoding="utf-8")
    return f"{', '.join(map(str, PICTURES))} written"


def _draw_gains(axes: Axes, rows: Sequence[Row]) -> None:
    """What each set gains over tuned random batches, with its error, the largest gain of ours on top."""
    gains = {(row["arm"], row["set"]): tuple(map(float, row["gain"].split(" ± "))) for row in rows if row["gain"]}
    sets = sorted((name for arm, name in gains if arm == "ours"), key=lambda name: gains["ours", name])
    for shift, (arm, (label, kind, marker)) in zip((0.16, -0.16), WAYS.items(), strict=True):
        places = [place + shift for place in range(len(sets))]
        means, errors = zip(*(gains[arm, name] for name in sets), strict=True)
        axes.errorbar(means, places, xerr=errors, fmt=marker, color=colour(kind), markersize=4, label=label)
    axes.axvline(0, color=colour("random"), linewidth=1, linestyle=":")
    axes.set(yticks=range(len(sets)), yticklabels=sets, xlabel="nDCG@10 over tuned random batches")
    axes.legend(loc="lower right")


def _draw_lessons(axes: Axes, rows: Sequence[Row]) -> None:
    """How large the lesson of a batch is, and about how many documents, at each temperature."""
    for name, dashes in zip(dict.fromkeys(row["set"] for row in rows), DASHES, strict=True):
        of_set = [row for row in rows if row["set"] == name]
        documents = [float(row["documents"]) for row in of_set]
        for loss, (label, kind) in LOSSES.items():
            lessons = [float(row[loss]) for row in of_set]
            axes.plot(documents, lessons, f"o{dashes}", color=colour(kind), markersize=4, label=f"{label}, {name}")
            if dashes == DASHES[0]:
                for row, across, up in zip(of_set, documents, lessons, strict=True):
                    axes.annotate(row["temperature"], (across, up), (0, 5), textcoords="offset points", ha="right")
    axes.set(xscale="log", xlim=(2.2, 90), xlabel="documents that the lesson is about", ylabel="size of the lesson")
    axes.set_xticks(DOCUMENTS, list(map(str, DOCUMENTS)))
    axes.minorticks_off()
    axes.legend(loc="upper left")


PICTURES: dict[Path, tuple[Path, Callable[[Axes, Sequence[Row]], None]]] = {
    Path("docs/results.svg"): (GAINS, _draw_gains),
    Path("experiments/rivals/lessons.svg"): (LESSONS, _draw_lessons),
}


if __name__ == "__main__":
    command(
        "docs.picture",
        "Draws README's picture, docs/results.svg, and experiments/rivals/lessons.svg from the tables of rivals.",
        "python -m docs.picture",
    )
