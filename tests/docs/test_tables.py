"""README and docs show the committed results."""

import json

import pytest

from docs.tables import PAGES, ROOT, fill
from stages.report.experiments import read_experiments


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_committed_results(page):
    text = page.read_text(encoding="utf-8")
    assert fill(text) == text, "run python -m docs.tables"


def test_a_table_holds_every_system_and_measure(tmp_path):
    results = json.loads((ROOT / "results/evaluate/biencoder.json").read_text())
    filled = fill("<!-- results: results/evaluate/biencoder.json -->\n")
    for system, measures in results["held_out"].items():
        row = next(line for line in filled.splitlines() if line.startswith(f"| {system} |"))
        for value in measures.values():
            assert f" {value:.3f} ".replace(" 0.", " .") in row


def test_filling_twice_changes_nothing():
    once = fill("before\n<!-- results: results/evaluate/biencoder.json -->\n| old |\n\nafter\n")
    assert "| old |" not in once
    assert fill(once) == once


def test_runs_are_summed_up_over_seeds(tmp_path):
    (tmp_path / "runs.tsv").write_text("model\tseed\tmrr\na\t0\t.25\na\t1\t.75\nb\t0\t.5\n")
    filled = fill(f"<!-- runs: {tmp_path}/runs.tsv -->\n")
    assert filled.splitlines()[1:] == ["| model | mrr |", "| --- | --: |", "| a | .500 ± .354 |", "| b | .500 |"]


def test_rows_are_shown_as_they_are(tmp_path):
    (tmp_path / "rows.tsv").write_text("kind\tmib\na, b\t1024\n")
    filled = fill(f"<!-- rows: {tmp_path}/rows.tsv -->\n")
    assert filled.splitlines()[1:] == ["| kind | mib |", "| --- | --: |", "| a, b | 1024 |"]


def test_the_report_can_show_what_is_in_experiments():
    shown = {experiment.name: experiment.table for experiment in read_experiments(ROOT / "experiments")}
    assert {"batches/quality", "batches/quality_code"} <= set(shown)
    assert all(len(row) == len(table.header) for table in shown.values() for row in table.rows)


def test_runs_of_other_lengths_get_columns_of_their_own(tmp_path):
    rows = ["domains\tsetting\tepochs\tseed\tndcg@10 home\tndcg@10 elsewhere"]
    rows += [f"birds\trandom\t{epochs}\t0\t.{epochs}\t.5" for epochs in (4, 8)]
    (tmp_path / "runs.tsv").write_text("\n".join(rows) + "\n")
    filled = fill(f"<!-- quality: {tmp_path}/runs.tsv -->\n")
    header = [f"birds, {epochs} epochs, {where}" for epochs in (4, 8) for where in ("home", "elsewhere")]
    assert filled.splitlines()[1] == f"|  | {' | '.join(header)} |"
    assert filled.splitlines()[3] == "| random | .400 | .500 | .800 | .500 |"
