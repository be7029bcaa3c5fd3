"""``python -m docs.picture``: draws README's picture of the newest results, ``docs/results.svg``."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from batchwright.core.atomic import atomic_file
from batchwright.core.command import run
from batchwright.core.params import load_params
from batchwright.formats.runs import Runs
from stages.report.evaluation import HELD_OUT, evaluation_files, read_evaluation
from stages.report.sections.hardness import draw_hardness, read_batches
from stages.report.sections.results import bars_height, draw_bars
from stages.report.svg import STYLE, standalone

PICTURE = Path("docs/results.svg")


def main() -> str:
    """Write hardness of the batches and nDCG@10 of the systems, side by side."""
    runs = load_params("runs", Runs).root
    scores = read_evaluation(evaluation_files(runs)).ndcg(HELD_OUT)
    batches = read_batches()
    with mpl.rc_context(STYLE):
        figure = Figure((10.0, max(3.0, bars_height(scores))), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_hardness(left, batches)
        left.set_title("How hard the batches are")
        draw_bars(right, scores, {name: run.batches for name, run in runs.items()})
        right.set_title("How well the models retrieve")
        picture = standalone(figure)
    with atomic_file(PICTURE) as temporary:
        temporary.write_text(picture, encoding="utf-8")
    return f"{PICTURE} written"


if __name__ == "__main__":
    run("docs.picture", main)
