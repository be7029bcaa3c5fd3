"""Pairs with hard negatives as one plain file."""

import json
import math
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.export import export
from tests.helpers import annotate_shards, run_python
from tests.train.toys import toy_batch, toy_rows, write_toy_shards

ROWS = [{**row, "negatives": [f"wrong {n} {k}" for k in range(2 + n % 3)]} for n, row in enumerate(toy_rows(16))]
"""Rows with two, three or four hard negatives."""


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two epochs of the same 16 pairs, in different orders."""
    batches = [toy_batch(rows[start : start + 4]) for rows in (ROWS, ROWS[::-1]) for start in range(0, 16, 4)]
    return write_toy_shards(tmp_path / "shards", batches, epochs=2)


def expected(negatives: int) -> list[dict[str, object]]:
    return [
        {
            "anchor": row["query"],
            "positive": row["document"],
            **{f"negative_{place}": text for place, text in enumerate(row["negatives"][:negatives], start=1)},
        }
        for row in ROWS
        if len(row["negatives"]) >= negatives
    ]


@pytest.mark.parametrize("negatives", [0, 2, 3])
def test_each_pair_is_written_once(shards: Path, tmp_path: Path, negatives: int) -> None:
    export(shards, tmp_path / "pairs.parquet", negatives)
    assert pq.read_table(tmp_path / "pairs.parquet").to_pylist() == expected(negatives)
    export(shards, tmp_path / "pairs.jsonl", negatives)
    assert lines(tmp_path / "pairs.jsonl") == expected(negatives)


def test_all_negatives_by_default_and_pairs_left_out_are_counted(shards: Path, tmp_path: Path) -> None:
    summary = export(shards, tmp_path / "pairs.parquet")
    kept = expected(4)
    assert pq.read_table(tmp_path / "pairs.parquet").to_pylist() == kept
    assert summary.startswith(f"{len(kept)} pairs with 4 hard negatives in ")
    assert f"; {16 - len(kept)} with fewer left out" in summary


def test_datasets_reads_both_kinds(shards: Path, tmp_path: Path) -> None:
    for kind, file in (("parquet", tmp_path / "pairs.parquet"), ("json", tmp_path / "pairs.jsonl")):
        export(shards, file, 2)
        found = datasets.load_dataset(kind, data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
        assert found.column_names == ["anchor", "positive", "negative_1", "negative_2"]
        assert list(found) == expected(2)


def test_metadata_are_columns_if_they_are_asked_for(shards: Path, tmp_path: Path) -> None:
    annotate_shards(shards)
    summary = export(shards, tmp_path / "pairs.parquet", 2)
    assert summary.endswith("; without place, their id (see --metadata)")
    assert pq.read_table(tmp_path / "pairs.parquet").to_pylist() == expected(2)
    assert "without" not in export(shards, tmp_path / "with.jsonl", 2, metadata=True)
    said = [{"place": str(n % 4), "their id": row["id"]} if n % 4 else {"place": None, "their id": None}
            for n, row in enumerate(ROWS)]  # fmt: skip
    assert lines(tmp_path / "with.jsonl") == [row | more for row, more in zip(expected(2), said, strict=True)]


SCORED = [
    {**row, "negatives": row["negatives"][: place % 3], "scores": [7.3, -0.1, 0.25][: 1 + place % 3]}
    for place, row in enumerate(ROWS[:4])
]
"""Rows with none to two hard negatives, and a teacher's scores."""


NONE = "2 have none, which need a train_group_size of 1 (see --negatives)"


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    return write_toy_shards(tmp_path / "scored", [toy_batch(SCORED)])


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_scores_are_a_column_for_sentence_transformers(scored: Path, tmp_path: Path) -> None:
    found = [{"anchor": row["query"], "positive": row["document"], "negative_1": row["negatives"][0],
              "scores": row["scores"][:2]} for row in SCORED if row["negatives"]]  # fmt: skip
    export(scored, tmp_path / "pairs.jsonl", 1)
    export(scored, tmp_path / "pairs.parquet", 1)
    assert lines(tmp_path / "pairs.jsonl") == pq.read_table(tmp_path / "pairs.parquet").to_pylist() == found


def test_flagembedding_gets_lists_of_texts_and_of_scores(scored: Path, tmp_path: Path) -> None:
    summary = export(scored, tmp_path / "pairs.jsonl", file_format="flagembedding")
    assert summary == f"4 pairs with up to 2 hard negatives in {tmp_path / 'pairs.jsonl'}; {NONE}"
    assert lines(tmp_path / "pairs.jsonl") == [
        {"query": row["query"], "pos": [row["document"]], "neg": row["negatives"],
         "pos_scores": row["scores"][:1], "neg_scores": row["scores"][1:]}
        for row in SCORED
    ]  # fmt: skip
    summary = export(scored, tmp_path / "one.jsonl", 1, "flagembedding")
    assert "2 pairs with 1 hard negatives" in summary and "2 with fewer left out" in summary
    assert [len(line["neg_scores"]) for line in lines(tmp_path / "one.jsonl")] == [1, 1]


def test_tevatron_gets_passages_with_an_id_for_each_text(shards: Path, scored: Path, tmp_path: Path) -> None:
    summary = export(scored, tmp_path / "pairs.jsonl", file_format="tevatron")
    assert summary.endswith("; the scores left out, for which Tevatron has no place")
    for line, row in zip(lines(tmp_path / "pairs.jsonl"), SCORED, strict=True):
        assert list(line) == ["query_id", "query", "positive_passages", "negative_passages"]
        assert (line["query_id"], line["query"]) == (content_id(row["query"]), row["query"])
        sides = ([row["document"]], row["negatives"])
        for name, texts in zip(list(line)[2:], sides, strict=True):
            assert line[name] == [{"docid": content_id(text), "title": "", "text": text} for text in texts]
    assert "scores" not in export(shards, tmp_path / "plain.jsonl", file_format="tevatron")


def test_missing_scores_are_null_and_counted(tmp_path: Path) -> None:
    rows = [SCORED[0] | {"scores": []}, SCORED[1] | {"scores": [1, math.nan]}, SCORED[2], SCORED[3]]
    folder = write_toy_shards(tmp_path / "shards", [toy_batch(rows)])
    summary = export(folder, tmp_path / "pairs.jsonl", file_format="flagembedding")
    assert summary.endswith(f"; {NONE}; 2 lack scores")
    found = [(line["pos_scores"], line["neg_scores"]) for line in lines(tmp_path / "pairs.jsonl")]
    assert found == [([None], []), ([1], [None]), ([7.3], [-0.1, 0.25]), ([7.3], [])]
    assert "1 lack scores" in export(folder, tmp_path / "none.jsonl", 0)
    rows[2]["scores"] = [1]
    damaged = write_toy_shards(tmp_path / "damaged", [toy_batch(rows)])
    with pytest.raises(InputError, match=r"batch 0 is damaged .scores are not one for each document"):
        export(damaged, tmp_path / "damaged.jsonl")


def test_what_cannot_be_exported_is_refused(shards: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pair has 5 hard negatives, the most are 4"):
        export(shards, tmp_path / "pairs.parquet", 5)
    with pytest.raises(InputError, match=r"must end in \.parquet or \.jsonl"):
        export(shards, tmp_path / "pairs.csv")
    with pytest.raises(InputError, match=r"must end in \.jsonl"):
        export(shards, tmp_path / "pairs.parquet", file_format="tevatron")
    assert [file.name for file in tmp_path.iterdir()] == ["shards"]


def test_the_command(shards: Path, tmp_path: Path) -> None:
    done = run_python("-m", "project", "export", "shards", "pairs.jsonl", "--negatives", "2", cwd=tmp_path)
    assert done.stdout == "16 pairs with 2 hard negatives in pairs.jsonl\n"
    command = ("-m", "project", "export", "shards", "pairs.jsonl", "--format", "flagembedding")
    assert run_python(*command, cwd=tmp_path).stdout == "16 pairs with up to 4 hard negatives in pairs.jsonl\n"
    assert lines(tmp_path / "pairs.jsonl")[0]["neg"] == ROWS[0]["negatives"]
    assert run_python("-m", "project", "export", "nothing", "pairs.jsonl", cwd=tmp_path).returncode == 1
    assert run_python(*command, "--doubtful", cwd=tmp_path).stderr.endswith("leave it out with --doubtful\n")
