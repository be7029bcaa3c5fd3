"""Every kind of table, made from files."""

from pathlib import Path

from docs.tables import fill
from tests.report.artifacts import write_differences


def table(kind: str, *files: Path) -> list[str]:
    """The lines of a filled table."""
    marker = f"<!-- {kind}: {' '.join(map(str, files))} -->"
    first, *lines = fill(f"{marker}\n").splitlines()
    assert first == marker
    return lines


def tsv(file: Path, *rows: str) -> Path:
    file.write_text("".join(row.replace(" ", "\t").replace("_", " ") + "\n" for row in rows))
    return file


def test_filling_twice_changes_nothing_and_keeps_the_surrounding_text(tmp_path: Path):
    file = tsv(tmp_path / "rows.tsv", "kind mib", "a 1")
    once = fill(f"before\n<!-- rows: {file} -->\n| old |\n\nafter\n")
    assert once == f"before\n<!-- rows: {file} -->\n| kind | mib |\n| --- | --: |\n| a | 1 |\n\nafter\n"
    assert fill(once) == once


def test_a_table_whose_file_is_missing_is_left_out(tmp_path: Path):
    file = tsv(tmp_path / "rows.tsv", "kind mib", "a 1")
    assert table("rows", file, tmp_path / "missing.tsv") == []


def test_rows_are_shown_as_they_are_except_for_long_numbers(tmp_path: Path):
    file = tsv(tmp_path / "rows.tsv", "kind mib loss", "a,_b 1024 1.23456", "c 1 -0.00001")
    assert table("rows", file)[2:] == ["| a, b | 1024 | 1.2346 |", "| c | 1 | 0.0 |"]


def test_what_runs_gain_is_shown_with_the_errors_that_were_measured(tmp_path: Path):
    runs = {"cde": {"batches": "contextual"}, "cde-random": {"batches": "random"}}
    write_differences(tmp_path / "compare.tsv", runs, ["held_out"])
    assert table("gains", tmp_path / "compare.tsv") == [
        "|  | seeds | nDCG@10 | over start | over BM25 | over random batches | other runs differ in |",
        "| --- | --: | --: | --: | --: | --: | --: |",
        "| cde | 3 | .623 | +.062 ± .004 | -.062 ± .004 | -.188 ± .004 | random batches: batches, steps |",
        "| cde-random | 1 | .623 | +.064 ± .004 | -.061 ± .004 | - | - |",
    ]


def test_stages_and_their_sum_are_shown_by_size_and_cores(tmp_path: Path):
    rows = ["100000 1 embed 1.2 2 30", "100000 1 pack 2.4 2 20", "100000 2 embed 1 2 40", "100000 2 pack .9 2 50"]
    file = tsv(tmp_path / "scale.tsv", "pairs cores stage seconds processor_s mib", *rows)
    assert table("scale", file) == [
        "| seconds; MiB | 100,000 pairs, 1 core | 100,000 pairs, 2 cores |",
        "| --- | --: | --: |",
        "| embed | 1; 30 | 1; 40 |",
        "| pack | 2; 20 | 1; 50 |",
        "| all | 4; 30 | 2; 50 |",
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


def test_a_table_may_show_some_columns(tmp_path: Path):
    file = tsv(tmp_path / "rows.tsv", "kind mib loss", "a 1024 .5")
    once = fill(f"<!-- rows: {file}; loss -->\n")
    assert once == f"<!-- rows: {file}; loss -->\n| kind | loss |\n| --- | --: |\n| a | .5 |\n"
    assert fill(once) == once


def test_what_ways_bring_is_a_mean_over_sets(tmp_path: Path):
    """A way that was not tried on all sets has an empty cell."""
    file = tmp_path / "minilm.tsv"
    rows = [("x", "random", ".5", ""), ("y", "random", ".7", ""), ("x", "random, our loss", ".6", "+.100 ± .001")]
    rows += [("x", "ours", ".52", "+.020 ± .010"), ("y", "ours", ".7", "-.010 ± .010")]
    lines = [f"{name}\tminilm\t{arm}\t{ndcg}\t{gain}" for name, arm, ndcg, gain in rows]
    file.write_text("\n".join(["set\tkind\tarm\tndcg\tgain", *lines]) + "\n")
    header, _, row = table("brings", file)
    assert header.endswith(
        "| random, temperature .05 | random | random, our loss | ours, InfoNCE | ours | ours, untuned | ours ahead on |"
    )
    assert row == "| MiniLM, fine-tuned | 2 |  | .600 |  |  | +.005 ± .015 |  | 1 of 2 |"


def test_ways_are_shown_on_the_sets_that_all_of_them_were_tried_on(tmp_path: Path):
    file = tmp_path / "static.tsv"
    cells = {("x", "ours"): "+.020 ± .010", ("y", "ours"): "+.010 ± .010", ("x", "b3"): "+.100 ± .001"}
    lines = [f"{name}\t{arm}\t\t{gain}" for (name, arm), gain in cells.items()]
    file.write_text("\n".join(["set\tarm\tndcg\tgain", "x\trandom\t.5\t", "y\trandom\t.7\t", *lines]) + "\n")
    assert table("ways", file) == [
        "|  | x |",
        "| --- | --: |",
        "| random, nDCG@10 | .500 |",
        "| b3 | +.100 ± .001 |",
        "| ours | +.020 ± .010 |",
    ]
    *_, random, ours = fill(f"<!-- ways: {file}; ours -->\n").splitlines()
    assert (random, ours) == ("| random, nDCG@10 | .500 | .700 |", "| ours | +.020 ± .010 | +.010 ± .010 |")
