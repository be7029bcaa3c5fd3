"""Results: one row and one bar per system."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.formats.runs import Run
from stages.report import charts
from stages.report.scores import Difference, read_evaluation
from stages.report.sections.results import choices_table, differences_table, results_table
from tests.report.artifacts import BASELINES, CONTEXTUAL, MINED, RANDOM, scores, write_artifacts, write_evaluation
from tests.report.reader import Reader, page_in, section_of

Report = Callable[[], str]


@pytest.mark.parametrize("collections", [(), ("scifact",), ("scifact", "cran$field$", "<i>vaswani")])
def test_the_table_of_results_contains_every_number(tmp_path: Path, make_report: Report, collections: tuple[str, ...]):
    write_artifacts(tmp_path, collections)
    make_report()
    rows = Reader(page_in(tmp_path)).rows
    for system, ndcg in (BASELINES | {"biencoder": CONTEXTUAL, "biencoder-random": RANDOM}).items():
        expected = [
            f"{value:.3f}".lstrip("0")
            for place in range(len(collections) + 1)
            for value in scores(ndcg + place / 50).values()
        ]
        assert [system, *expected] in rows


def test_collections_are_named_with_their_number_of_queries(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    rows = Reader(section_of(page_in(tmp_path), "results").split("</table>", 1)[1]).rows
    assert rows[:2] == [
        ["", "Held-out queries (2,468)", "scifact (1,234)"],
        ["System", *["nDCG@10", "MRR@10", "Recall@100"] * 2],
    ]


def test_the_best_of_each_column_is_bold_and_no_other(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    table = section_of(page_in(tmp_path), "results").split("<tbody>")[2].split("</tbody>")[0]
    rows = re.findall("<tr>.*</tr>", table)
    assert {row.count("<strong>") for row in rows if ">biencoder</th>" in row} == {6}
    assert not any("<strong>" in row for row in rows if ">biencoder</th>" not in row)


def test_systems_have_one_row_each_baselines_first_then_runs_in_the_order_of_the_parameters(
    tmp_path: Path, make_report: Report
):
    write_artifacts(tmp_path, ("scifact",), ("seed", "cde"), mined=("mined-1",))
    make_report()
    section = section_of(page_in(tmp_path), "results")
    gained, rows = (Reader(part).rows for part in section.split("</table>", 1))
    systems = [*BASELINES, "seed", "seed-random", "cde", "cde-random", "seed-mined-1"]
    assert [row[0] for row in gained[2:]] == systems[len(BASELINES) :]
    assert [row[0] for row in rows[2 : 2 + len(systems)]] == systems
    assert ["Domain", *systems] in rows
    for chart in section.split("<svg")[1:]:
        assert [text for text in re.findall(r">([^<>]+)</text>", chart) if text in systems] == systems


def test_the_best_system_is_named_first(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("seed", "cde"), mined=("mined-1",))
    assert f"best nDCG@10 on held-out queries {MINED:.3f} (seed-mined-1)" in make_report()


def test_bars_have_the_colour_of_the_batches_and_baselines_are_grey(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("contextual-ly-named",), mined=("mined-1",))
    make_report()
    chart = section_of(page_in(tmp_path), "results").split("<svg")[1]
    fills = re.findall(r'clip-path="url\([^)]*\)" style="fill: (#\w{6})', chart)
    grey, batches = charts.colour(None), ("contextual", "random", "mined-1")
    assert fills == [grey, grey, *(charts.colour(each) for each in batches)]
    assert len(set(fills)) == 3


def test_a_system_that_was_not_evaluated_on_a_collection_has_no_scores_there(tmp_path: Path):
    write_evaluation(tmp_path / "baselines.json", {"BM25": 0.5})
    write_evaluation(tmp_path / "cde.json", {"cde": 0.6}, ("held_out", "scifact"))
    table = results_table(read_evaluation([tmp_path / "baselines.json", tmp_path / "cde.json"]))
    assert [row[4:] for row in table.rows] == [["-", "-", "-"], [".620", ".570", ".891"]]
    assert table.best == {(1, column) for column in range(1, 7)}


def test_measures_that_were_asked_for_follow_the_others(tmp_path: Path):
    file = tmp_path / "cde.json"
    write_evaluation(file, {"cde": 0.6}, ("held_out", "scifact"))
    scored = json.loads(file.read_text())
    scored["scifact"]["cde"] |= {"hit_rate@5": 0.25, "ndcg@10_64d": 0.5, "ndcg@10_error": 0.01}
    file.write_text(json.dumps(scored))
    table = results_table(read_evaluation([file]))
    assert table.header[4:] == ["nDCG@10", "MRR@10", "Recall@100", "hit_rate@5", "ndcg@10_64d"]
    assert table.rows[0][4:] == [".620", ".570", ".891", ".250", ".500"]
    assert [width for _, width in table.groups] == [1, 3, 5]


def test_two_files_with_scores_of_one_system_are_refused(tmp_path: Path):
    for name, ndcg in (("cde", 0.5), ("xtr", 0.6)):
        write_evaluation(tmp_path / f"{name}.json", {"before training": ndcg, name: 0.7})
    with pytest.raises(InputError, match=r"xtr\.json: another file also contains scores of 'before training'"):
        read_evaluation([tmp_path / "cde.json", tmp_path / "xtr.json"])


def test_systems_evaluated_on_different_queries_are_refused(tmp_path: Path):
    for name in ("cde", "xtr"):
        write_evaluation(tmp_path / f"{name}.json", {name: 0.7})
    table = tmp_path / "xtr.tsv"
    table.write_text(table.read_text().replace("\t1234\t", "\t1233\t"))
    with pytest.raises(InputError, match=r"xtr\.json: 2466 queries of 'held_out', but earlier files have 2468"):
        read_evaluation([tmp_path / "cde.json", tmp_path / "xtr.json"])


def test_without_held_out_queries_the_first_collection_takes_their_place(tmp_path: Path):
    write_evaluation(tmp_path / "cde.json", {"cde": 0.6, "xtr": 0.5}, ("scifact", "arguana"))
    evaluation = read_evaluation([tmp_path / "cde.json"])
    assert (evaluation.first, evaluation.best) == ("scifact", ("cde", 0.6))


def test_an_evaluation_without_scores_is_refused(tmp_path: Path):
    (tmp_path / "cde.json").write_text("{}")
    with pytest.raises(InputError, match=r"cde\.json: no scores; run the stage 'evaluate' again"):
        read_evaluation([tmp_path / "cde.json"])


def test_flaws_of_a_collection_are_told(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    file = tmp_path / "results/evaluate/biencoder.json"
    found = json.loads(file.read_text())
    found["scifact"]["biencoder"] |= {"missing_documents": 1234, "trained_queries": 56}
    file.write_text(json.dumps(found))
    make_report()
    results = section_of(page_in(tmp_path), "results")
    assert "1,234 relevant documents of scifact are not in its corpus" in results
    assert "56 queries of scifact are queries of training pairs, too" in results


def test_differences_are_shown_with_their_standard_errors(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    rows = Reader(section_of(page_in(tmp_path), "results")).rows
    gains, of_random = ["over start", "over BM25", "over random batches"], "random batches: batches, steps"
    assert rows[:4] == [
        ["", "Held-out queries (2,468)", "scifact (2,468)", ""],
        ["Run", "seeds", *["nDCG@10", *gains] * 2, "other runs differ in"],
        ["biencoder", "3", *[".623", "+.062 ± .004", "-.062 ± .004", "-.188 ± .004"] * 2, of_random],
        ["biencoder-random", "1", *[".623", "+.064 ± .004", "-.061 ± .004", "-"] * 2, "-"],
    ]


def test_fewer_seeds_are_told_and_what_differs_only_if_more_than_the_batches_do():
    row = {"collection": "held_out", "system": "a", "reference": "b", "queries": 2, "ndcg@10": 0.5}
    row |= {"difference": 0.1, "error": 0.01}
    starts = Difference.model_validate(row | {"over": "start", "seeds": 3})
    random = Difference.model_validate(row | {"over": "random batches", "differs_in": "batches", "seeds": 1})
    table = differences_table([starts, random])
    assert table.header == ["Run", "seeds", "nDCG@10", "over start", "over random batches"]
    assert table.rows == [["a", "3", ".500", "+.100 ± .010", "+.100 ± .010, 1 seed"]]


def test_each_run_that_another_is_compared_with_says_what_differs():
    row = {"collection": "held_out", "system": "a", "reference": "b", "queries": 2, "ndcg@10": 0.5}
    row |= {"difference": 0.1, "error": 0.01}
    told = {"MLM": "decoder, steps", "random batches": "batches"}
    table = differences_table([Difference.model_validate(row | {"over": o, "differs_in": d}) for o, d in told.items()])
    assert table.header == ["Run", "seeds", "nDCG@10", "over MLM", "over random batches", "other runs differ in"]
    assert table.rows[0][-1] == "MLM: decoder, steps; random batches: batches"
    decoder = Difference.model_validate(row | {"over": "MLM", "differs_in": "decoder"})
    assert differences_table([decoder]).header == ["Run", "seeds", "nDCG@10", "over MLM"]


def test_what_tune_chose_for_a_run_is_shown_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"batches": "random", "temperature": 0.07, "learning_rate": 0.1, "negatives_stand_for": "domain"}
    write_json(Path("results/tune/best.json"), {**settings, "run": "a", "reason": "no gain", "manifest": "m"})
    runs = {name: Run(variant="xtr", batches=name, start="models/start/b") for name in ("best", "random")}
    assert choices_table(runs).rows == [["best", "random", "0.07", "0.1", "domain", "no gain"]]
