"""The command ``python -m stages.report.live``: the curves of trainings while they run."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from markupsafe import Markup

from batchwright.core.atomic import atomic_file
from batchwright.core.command import command
from batchwright.core.errors import InputError
from batchwright.core.params import load_params
from batchwright.core.paths import REPORT, RESULTS
from batchwright.formats.runs import Run, Runs
from stages.report.page import render
from stages.report.section import Section, show_charts
from stages.report.sections.curves import Step, losses, read_curve
from stages.report.sections.outcome import quality, read_dev_curve

LIVE = REPORT.with_name("live.html")
SECONDS = 5
"""Between two drawings; an open page loads itself anew as often."""

Row = TypeVar("Row")


def main() -> None:
    """Draw ``report/live.html`` again and again, until interrupted."""
    runs = load_params("runs", Runs).root
    draw(runs)
    print(
        f"live: open {LIVE} in a browser, where the curves grow; Ctrl-C ends the drawing, not the training", flush=True
    )
    while True:
        time.sleep(SECONDS)
        draw(runs)


def draw(runs: Mapping[str, Run]) -> None:
    """Write the page with the curves that are there; it names the runs that have none yet."""
    curves, dev = _there(read_curve, runs), _there(read_dev_curve, runs)
    sections = [losses(curves, runs)] if curves else []
    if dev:
        intro = "nDCG@10 on dev queries, which the training does not see; step 0 is before it."
        parts = [show_charts(quality(dev, runs))]
        sections.insert(0, Section(id="quality", title="Quality by step", intro=intro, parts=parts))
    page = render(_summary(curves, runs), sections, reload=SECONDS)
    with atomic_file(LIVE, durable=False) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _there(read: Callable[[str], Sequence[Row]], runs: Iterable[str]) -> dict[str, Sequence[Row]]:
    """Read the curves that have rows; a training that begins removes those that were there before."""
    found: dict[str, Sequence[Row]] = {}
    for run in runs:
        with suppress(InputError):
            found[run] = read(run)
    return {run: rows for run, rows in found.items() if rows}


def _summary(curves: Mapping[str, Sequence[Step]], runs: Iterable[str]) -> Markup:
    """Say which runs are in training, told by their missing summary, and which have not begun."""
    trains = [name for name in curves if not (RESULTS / "train" / f"{name}.json").exists()]
    training = ", ".join(f"{name}, step {curves[name][-1].step:,}" for name in trains)
    missing = ", ".join(name for name in runs if name not in curves)
    return Markup("In training: {}. No curve yet: {}.").format(training or "none", missing or "none")


if __name__ == "__main__":
    command(
        "stages.report.live",
        "Draws the curves of trainings while they run: report/live.html, a page that renews itself. Ctrl-C ends it.",
        "python -m stages.report.live",
    )
