"""Every kind of table, made from files."""

from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from docs.tables import fill
from tests.report.artifacts import BASELINES, scores, write_differences, write_evaluation


def table(kind: str, *files: Path) -> list[str]:
    """The lines of a filled table."""
    marker = f"<!-- {kind}: {' '.join(map(str, files))} -->"
    first, *lines = fill(f"{marker}\n").splitlines()
    assert first == marker
    return lines


def tsv(file: Path, *rows: str) -> Path:
    file.write_text("".join(row.replace(" ", "\t").replace("_", " ") + "\n" for row in rows))
    return file


def test_a_table_of_results_has_one_row_per_system_of_all_files_in_their_order(tmp_path: Path):
    files = [tmp_path / f"{name}.json" for name in ("baselines", "xtr", "cde")]
    write_evaluation(files[0], BASELINES, ("held_out", "arguana"))
    for file, ndcg in zip(files[1:], (0.6, 0.7), strict=True):
        write_evaluation(file, {file.stem: ndcg}, ("held_out", "arguana"))
    header, _, *rows = table("results", *files)
    columns = [
        f"{name} {measure}" for name in ("held-out", "arguana") for measure in ("nDCG@10", "MRR@10", "Recall@100")
    ]
    assert header == f"|  | {' | '.join(columns)} |"
    expected = {
        system: [value for shift in (0, 0.02) for value in scores(ndcg + shift).values()]
        for system, ndcg in (BASELINES | {"xtr": 0.6, "cde": 0.7}).items()
    }
    assert rows == [
        f"| {system} | {' | '.join(f'{value:.3f}'.lstrip('0') for value in values)} |"
        for system, values in expected.items()
    ]


def test_results_without_a_table_by_domain_are_in_the_order_of_their_file(tmp_path: Path):
    measures = '{"ndcg@10": 0.5, "mrr@10": 0.25, "recall@100": 1}'
    (tmp_path / "old.json").write_text(f'{{"held_out": {{"BM25": {measures}, "untrained": {measures}}}}}')
    assert table("results", tmp_path / "old.json")[2:] == [
        "| BM25 | .500 | .250 | 1.000 |",
        "| untrained | .500 | .250 | 1.000 |",
    ]


def test_two_files_that_score_the_same_system_are_refused(tmp_path: Path):
    for name in ("cde", "xtr"):
        write_evaluation(tmp_path / f"{name}.json", {"untrained": 0.5, name: 0.6})
    with pytest.raises(InputError, match="scores of 'untrained'"):
        table("results", tmp_path / "cde.json", tmp_path / "xtr.json")


def test_filling_twice_changes_nothing_and_keeps_the_surrounding_text(tmp_path: Path):
    file = tsv(tmp_path / "rows.tsv", "kind mib", "a 1")
    once = fill(f"before\n<!-- rows: {file} -->\n| old |\n\nafter\n")
    assert once == f"before\n<!-- rows: {file} -->\n| kind | mib |\n| --- | --: |\n| a | 1 |\n\nafter\n"
    assert fill(once) == once


def test_a_table_whose_file_is_missing_is_left_out(tmp_path: Path):
    file = tsv(tmp_path / "rows.tsv", "kind mib", "a 1")
    assert table("rows", file, tmp_path / "missing.tsv") == []


def test_runs_are_summarised_over_seeds(tmp_path: Path):
    file = tsv(tmp_path / "runs.tsv", "model seed mrr", "a 0 .25", "a 1 .75", "b 0 .5")
    assert table("runs", file) == ["| model | mrr |", "| --- | --: |", "| a | .500 ± .354 |", "| b | .500 |"]


def test_rows_are_shown_as_they_are_except_for_long_numbers(tmp_path: Path):
    file = tsv(tmp_path / "rows.tsv", "kind mib loss", "a,_b 1024 1.23456", "c 1 -0.00001")
    assert table("rows", file)[2:] == ["| a, b | 1024 | 1.2346 |", "| c | 1 | 0.0 |"]


def test_runs_of_different_lengths_get_separate_columns(tmp_path: Path):
    rows = [f"birds random {epochs} 0 .{epochs} .5" for epochs in (4, 8)]
    file = tsv(tmp_path / "runs.tsv", "domains setting epochs seed ndcg@10_home ndcg@10_elsewhere", *rows)
    header, _, row = table("quality", file)
    columns = [f"birds, {epochs} epochs, {where}" for epochs in (4, 8) for where in ("home", "elsewhere")]
    assert header == f"|  | {' | '.join(columns)} |"
    assert row == "| random | .400 | .500 | .800 | .500 |"


def test_several_domains_are_counted_and_a_setting_that_lacks_some_has_gaps(tmp_path: Path):
    rows = ["birds easy 4 0 .5 .25", "birds easy 4 1 .7 .25", "a_b easy 4 0 .1 .2", "birds hard 4 0 .3 .4"]
    file = tsv(tmp_path / "runs.tsv", "domains setting epochs seed ndcg@10_home ndcg@10_elsewhere", *rows)
    header, _, *shown = table("quality", file)
    assert header == "|  | birds, home | birds, elsewhere | 2 domains, home | 2 domains, elsewhere |"
    assert shown == ["| easy | .600 | .250 | .100 | .200 |", "| hard | .300 | .400 |  |  |"]


def test_settings_show_their_difference_to_the_first_one_paired_by_seed(tmp_path: Path):
    rows = [f"birds easy 4 {seed} .{seed} .5" for seed in (2, 3, 4)]
    rows += [f"birds hard 4 {seed} .{seed + 4 + seed % 2} .5" for seed in (4, 3, 2, 1)]
    file = tsv(tmp_path / "runs.tsv", "domains setting epochs seed ndcg@10_home ndcg@10_elsewhere", *rows)
    assert table("quality", file)[2:] == [
        "| easy | .300 | .500 |",
        "| hard | .700 (+.433 ± .033) | .500 (.000 ± .000) |",
    ]


def test_what_runs_gain_is_shown_with_the_errors_that_were_measured(tmp_path: Path):
    runs = {"cde": {"batches": "contextual"}, "cde-random": {"batches": "random"}}
    write_differences(tmp_path / "compare.tsv", runs, ["held_out"])
    assert table("gains", tmp_path / "compare.tsv") == [
        "|  | nDCG@10 | over start | over BM25 | over random batches |",
        "| --- | --: | --: | --: | --: |",
        "| cde | .623 | +.062 ± .004 | -.062 ± .004 | -.188 ± .004 |",
        "| cde-random | .623 | +.064 ± .004 | -.061 ± .004 | - |",
    ]


def test_methods_are_compared_to_the_reference_if_there_are_enough_batches(tmp_path: Path):
    rows = ["a 8 reference 20 .5 2", "b 8 reference 20 .4 4", "a 8 ours 20 .6 1", "b 8 ours 20 .4 1", "c 8 ours 19 9 9"]
    file = tsv(tmp_path / "batches.tsv", "data batch method batches unmasked seconds", *rows)
    assert table("batches", file) == [
        "| unmasked hardness; time, of the reference's | batches of 8 |",
        "| --- | --: |",
        "| reference | 1.00 (1.00 to 1.00); 1.000 |",
        "| ours | 1.10 (1.00 to 1.20); .375 |",
    ]


def test_ways_to_score_are_shown_by_batch_size_with_gaps(tmp_path: Path):
    file = tsv(tmp_path / "scores.tsv", "way batch seconds mib", "all 8 0.5 10", "all 16 2 40", "few 8 0.25 5")
    assert table("scores", file)[2:] == ["| all | 0.50 s; 10 MiB | 2.00 s; 40 MiB |", "| few | 0.25 s; 5 MiB |  |"]


def test_retrieval_by_tokens_is_shown_with_its_cost(tmp_path: Path):
    rows = ["nfc max 0 .5 .6 1000 .25", "nfc max 1 .7 .6 3000 .75"]
    file = tsv(
        tmp_path / "tokens.tsv", "collection score seed ndcg@10_10 ndcg@10_all candidates_100 imputed_100", *rows
    )
    assert table("tokens", file) == [
        "| nDCG@10 by tokens retrieved | 10 | all | candidates, 100 | imputed, 100 |",
        "| --- | --: | --: | --: | --: |",
        "| max, nfc | .600 | .600 | 2,000 | .500 |",
    ]
