"""Quality by step, and the steps to where random batches end."""

import re
from collections.abc import Callable
from pathlib import Path

from stages.report.sections.outcome import DevStep, steps_table, steps_to
from tests.report.artifacts import write_artifacts, write_dev_curve
from tests.report.reader import Reader, page_in, section_of

Report = Callable[[], str]


def curve(*values: float) -> list[DevStep]:
    return [DevStep.model_validate({"step": 10 * number, "ndcg@10": value}) for number, value in enumerate(values)]


def test_the_steps_are_those_of_the_first_measure_that_is_good_enough() -> None:
    assert steps_to(curve(0.1, 0.5, 0.4, 0.6), 0.5) == 10
    assert steps_to(curve(0.1, 0.5), 0.51) is None


def test_runs_are_compared_with_the_end_of_their_control() -> None:
    curves = {"ours": curve(0.1, 0.4, 0.5), "late": curve(0.1, 0.2, 0.3), "control": curve(0.1, 0.2, 0.35, 0.4)}
    table = steps_table(curves, {"ours": "control", "late": "control", "unwatched": "control", "late ": "nobody"})
    assert table.rows == [
        ["ours", ".500", "control", ".400", "30", "10", ".333"],
        ["late", ".300", "control", ".400", "30", "-", "-"],
    ]


def test_the_page_shows_curves_and_steps_of_the_runs_that_were_watched(tmp_path: Path, make_report: Report) -> None:
    write_artifacts(tmp_path, variants=("biencoder", "cde"))
    write_dev_curve(tmp_path, "biencoder", [0.25, 0.5, 0.5])
    write_dev_curve(tmp_path, "biencoder-random", [0.25, 0.375, 0.5])
    make_report()
    section = section_of(page_in(tmp_path), "outcome")
    assert ["biencoder", ".500", "biencoder-random", ".500", "20", "10", ".500"] in Reader(section).rows
    assert "Quality by step, biencoder" in section
    assert "Quality by step, cde" not in section


def test_gains_over_random_batches_come_first(tmp_path: Path, make_report: Report) -> None:
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    section = section_of(page_in(tmp_path), "outcome")
    overs = [f"Gain over {over}, Held-out queries" for over in ("random batches", "BM25", "start")]
    assert re.findall("<figcaption>(.*?)</figcaption>", section) == overs
    assert "The dots are gains" in section and "Quality by step" not in section, "of what is there"
    assert "-.188 ± .004" in section.split("</svg>")[0]


def test_without_curves_or_differences_there_is_no_section(tmp_path: Path, make_report: Report) -> None:
    write_artifacts(tmp_path)
    (tmp_path / "results/compare.tsv").write_text("\n")
    make_report()
    assert 'id="outcome"' not in page_in(tmp_path)
