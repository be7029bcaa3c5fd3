"""What changed since the last commit."""

from collections.abc import Callable
from pathlib import Path

from stages.report.sections.changes import compare
from tests.report.artifacts import commit, write_artifacts, write_evaluation
from tests.report.reader import Reader, page_in, section_of

Report = Callable[[], str]
LOCK = "stages: {pack: {deps: [{path: data/pairs, md5: %s}, {path: stages/pack, md5: b}]}}"


def test_scores_parameters_and_inputs_that_differ_are_shown(tmp_path: Path, make_report: Report) -> None:
    write_artifacts(tmp_path)
    (tmp_path / "dvc.lock").write_text(LOCK % "a")
    commit(tmp_path, "params.yaml", "dvc.lock", "results")
    (tmp_path / "dvc.lock").write_text(LOCK % "c")
    write_evaluation(tmp_path / "results/evaluate/biencoder.json", {"biencoder": 0.6})
    make_report()
    assert Reader(section_of(page_in(tmp_path), "changes")).rows == [
        ["", "Last run", "This run", "Change"],
        ["biencoder, held-out", "0.6230", "0.6000", "-0.0230"],
        ["", "Last run", "This run"],
        ["cluster.iterations", "2", "3"],
        ["Stage", "Inputs"],
        ["pack", "data/pairs"],
    ]


def test_without_a_commit_or_a_difference_there_is_no_section(tmp_path: Path, make_report: Report) -> None:
    write_artifacts(tmp_path)
    make_report()
    assert 'id="changes"' not in page_in(tmp_path)
    params = (tmp_path / "params.yaml").read_text()
    commit(tmp_path, "params.yaml", "results")
    (tmp_path / "params.yaml").write_text(params)
    make_report()
    assert 'id="changes"' not in page_in(tmp_path)


def test_what_is_new_or_gone_is_named() -> None:
    before = {"results/pack/random.json": '{"batches": 4, "old": 1}', "dvc.lock": "stages: {gone: {}}"}
    now = {"results/pack/random.json": '{"batches": 4, "domains": {"a": 2.5}}', "dvc.lock": "stages: {made: {}}"}
    tables = compare(before, now)
    assert tables["Data and batches"].rows == [
        ["pack/random: domains.a", "-", "2.5000", "-"],
        ["pack/random: old", "1", "-", "-"],
    ]
    assert tables["Changed inputs, which made stages run again"].rows == [
        ["made", "a new stage"],
        ["gone", "no longer there"],
    ]
