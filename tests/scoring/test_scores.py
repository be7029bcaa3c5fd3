"""What is written about the systems scored."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv
from batchwright.formats.query_scores import read_query_scores
from stages.scoring.collection import Collection, Text
from stages.scoring.paired import estimate
from stages.scoring.retrieval import Ranked
from stages.scoring.scores import EXAMPLES, LENGTH, write_scores

COLLECTION = Collection(
    name="held_out",
    queries=[Text(id=f"q{number}", text="", domain="birds" if number < 3 else "fish") for number in range(4)],
    documents=[Text(id=f"d{number}", text="", domain="birds") for number in range(5)],
    relevant={f"q{number}": {f"d{number}": 1} for number in range(4)},
    flaws={"missing_documents": 2},
)


LONG = Collection(
    name="held_out",
    queries=[Text(id=f"q{number}", text=f"asked\n{number}", domain="birds") for number in range(EXAMPLES)],
    documents=[Text(id=f"d{number}", text="word " * 100, domain="birds") for number in range(EXAMPLES)],
    relevant={f"q{number}": {f"d{number}": 1} for number in range(EXAMPLES)},
)


def in_order(collection: Collection) -> np.ndarray:
    return np.tile(np.arange(5), (len(collection.queries), 1))


def test_scores_are_written_by_query_by_domain_and_overall(tmp_path: Path) -> None:
    file, queries = tmp_path / "run.json", tmp_path / "scores/run.parquet"
    line = write_scores(file, queries, {"run": [in_order]}, [COLLECTION])
    expected = [1 / np.log2(place + 2) for place in range(4)]
    by_query = read_query_scores(queries, made_by="evaluate")
    assert by_query == {
        ("held_out", "run"): [{f"q{place}": pytest.approx(value) for place, value in enumerate(expected)}]
    }
    overall = read_json(file, made_by="evaluate")["held_out"]["run"]
    assert overall["ndcg@10"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert overall["ndcg@10_error"] == pytest.approx(stats.sem(expected), abs=1e-6)
    assert (overall["seeds"], overall["queries"], overall["missing_documents"]) == (1, 4, 2)
    domains = read_tsv(file.with_suffix(".tsv"), made_by="evaluate")
    assert [(row["domain"], row["queries"]) for row in domains] == [("birds", "3"), ("fish", "1")]
    assert line == (
        f"nDCG@10 on held-out queries: run {np.mean(expected):.3f}; "
        "2 relevant documents of held_out are not in its corpus and count as not found"
    )


def test_measures_that_are_asked_for_come_beside_the_others(tmp_path: Path) -> None:
    file, queries = tmp_path / "run.json", tmp_path / "run.parquet"
    answering = replace(COLLECTION, name="facts", answers={query.id: ["none"] for query in COLLECTION.queries})
    write_scores(file, queries, {"run": [in_order]}, [COLLECTION, answering], ["hit_rate@1", "answers@5", "ndcg@10"])
    held_out, facts = (read_json(file, made_by="evaluate")[name]["run"] for name in ("held_out", "facts"))
    assert (held_out["hit_rate@1"], held_out.get("answers@5"), facts["answers@5"]) == (0.25, None, 0)
    rows = read_tsv(file.with_suffix(".tsv"), made_by="evaluate")
    assert [(row["hit_rate@1"], row["answers@5"]) for row in rows if row["domain"] == "fish"] == [("0", ""), ("0", "0")]
    table = pq.read_table(queries)
    assert table.column_names[-2:] == ["hit_rate@1", "answers@5"]
    assert table["answers@5"].to_pylist() == [None] * 4 + [0.0] * 4


def test_quality_at_fewer_dimensions_comes_last(tmp_path: Path) -> None:
    file, queries = tmp_path / "run.json", tmp_path / "run.parquet"
    write_scores(file, queries, {"run": [cut_to_2]}, [COLLECTION], ["hit_rate@1"])
    found = read_json(file, made_by="evaluate")["held_out"]["run"]
    mean = np.mean([1 / np.log2(place + 2) for place in (4, 3, 2, 1)])
    assert found["ndcg@10_2d"] == pytest.approx(mean, abs=1e-6) != found["ndcg@10"]
    assert list(read_tsv(file.with_suffix(".tsv"), made_by="evaluate")[0])[-2:] == ["hit_rate@1", "ndcg@10_2d"]
    assert np.mean(pq.read_table(queries)["ndcg@10_2d"].to_pylist()) == pytest.approx(mean)


def cut_to_2(collection: Collection) -> Ranked:
    return Ranked(in_order(collection), {2: reversed_order(collection)})


def reversed_order(collection: Collection) -> np.ndarray:
    return in_order(collection)[:, ::-1]


def test_seeds_are_averaged_and_count_as_draws(tmp_path: Path) -> None:
    file, queries = tmp_path / "run.json", tmp_path / "run.parquet"
    write_scores(file, queries, {"run": [in_order, reversed_order]}, [COLLECTION])
    table = [[1 / np.log2(place + 2) for place in places] for places in (range(4), (4, 3, 2, 1))]
    scored = read_query_scores(queries, made_by="evaluate")["held_out", "run"]
    assert [list(of_seed.values()) for of_seed in scored] == [pytest.approx(values) for values in table]
    overall = read_json(file, made_by="evaluate")["held_out"]["run"]
    assert (overall["seeds"], overall["queries"]) == (2, 4)
    assert overall["ndcg@10"] == pytest.approx(np.mean(table), abs=1e-6)
    assert overall["ndcg@10_error"] == pytest.approx(estimate(table).error, abs=1e-6)
    birds = read_tsv(file.with_suffix(".tsv"), made_by="evaluate")[0]
    assert float(birds["ndcg@10"]) == pytest.approx(np.mean([values[:3] for values in table]), abs=1e-4)


def test_the_same_scores_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_scores(tmp_path / f"{name}.json", tmp_path / f"{name}.parquet", {"run": [in_order]}, [COLLECTION])
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_missing_and_damaged_scores_are_an_input_error(tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    with pytest.raises(InputError, match=r"run\.parquet: no such file; run the stage 'evaluate' first"):
        read_query_scores(file, made_by="evaluate")
    file.write_text("no Parquet")
    with pytest.raises(InputError, match=r"run\.parquet: not a readable Parquet file"):
        read_query_scores(file, made_by="evaluate")


def test_examples_are_the_first_documents_and_the_first_relevant_one(tmp_path: Path) -> None:
    write_scores(tmp_path / "run.json", tmp_path / "run.parquet", {"run": [in_order]}, [LONG])
    rows = read_tsv(tmp_path / "run-examples.tsv", made_by="evaluate")
    assert {(row["query"], row["rank"], row["relevant"]) for row in rows if row["query"] == "asked 4"} == {
        ("asked 4", "1", "0"),
        ("asked 4", "2", "0"),
        ("asked 4", "3", "0"),
        ("asked 4", "5", "1"),
    }
    assert [row["rank"] for row in rows if row["query"] == "asked 9"] == ["1", "2", "3"]  # not ranked at all
    assert len({row["query"] for row in rows}) == EXAMPLES
    assert {len(row["document"]) for row in rows} == {LENGTH}
