"""A source's own scores of documents and hard negatives stay beside these, whatever becomes of the rows."""

import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from batchwright.formats.pairs import PAIRS_SCHEMA, SCORED_PAIRS, pairs_file, scan_pairs
from tests.ingest.running import ingest
from tests.ingest.tables import write

PAIRS = Path("data/pairs")
NAN = math.nan


def found(rows: list[dict[str, Any]], *scores: str, **columns: object) -> tuple[dict[str, Any], list[str]]:
    """Ingest rows; return each document's negatives and their scores, after its own, and why rows were rejected."""
    named = {"negatives": ["wrong"], "scores": list(scores), **columns}
    outcome = ingest({**write("raw/pairs/a.jsonl", rows), "domain": "d", "columns": named}, held_out=0)
    read = [pair for batch in scan_pairs(PAIRS, "d", None, SCORED_PAIRS.names) for pair in batch.to_pylist()]
    pairs = {pair["document"]: dict(zip(["", *pair["negatives"]], pair["scores"], strict=False)) for pair in read}
    assert all(len(pair["scores"]) in (0, 1 + len(pair["negatives"])) for pair in read)
    return pairs, [reason for _, _, reason in outcome.reasons]


def test_one_list_or_several_columns_hold_them(workspace: Path) -> None:
    rows: list[dict[str, Any]] = [{"query": f"q{n}", "document": f"d{n}", "wrong": ["n", "m"]} for n in range(2)]
    expected = {"d0": {"": 3, "n": 1, "m": -0.5}, "d1": {"": 2, "n": 2.5, "m": 0}}
    one = [row | {"scores": of} for row, of in zip(rows, ([3, 1, -0.5], [2, 2.5, 0]), strict=True)]
    assert found(one, "scores") == (expected, [])
    two = [row | {"own": row["scores"][0], "others": row["scores"][1:]} for row in one]
    assert found(two, "own", "others") == (expected, [])
    many = {"query": "q", "pos": ["d", "e"], "neg": ["n"], "pos_scores": [3, 2], "neg_scores": [1]}
    expected = {"d": {"": 3, "n": 1}, "e": {"": 2, "n": 1}}
    assert found([many], "pos_scores", "neg_scores", document="pos", negatives=["neg"]) == (expected, [])


def test_they_go_with_their_texts_when_rows_are_cleaned_and_joined(workspace: Path) -> None:
    rows = [
        {"query": "q", "document": "d", "wrong": ["n", " ", "d", "n", "m"], "scores": [3, 1, 9, 9, 9, 2]},
        {"query": "q", "document": "d", "wrong": ["n", "x", "answer"], "scores": [8, 8, 0.5, 8]},
        {"query": "q", "document": "answer", "wrong": [], "scores": [4]},
        {"query": "p", "document": "half", "wrong": ["n", "m"], "scores": [1, None, 0]},
        {"query": "o", "document": "none", "wrong": ["n"], "scores": None},
    ]
    pairs, _ = found(rows, "scores")
    assert pairs["d"] == {"": 3, "n": 1, "m": 2, "x": 0.5}
    assert pairs["answer"] == {"": 4}
    assert math.isnan(pairs["half"].pop("n")) and pairs["half"] == {"": 1, "m": 0}
    assert pairs["none"] == {}


def test_rows_with_wrong_scores_are_rejected(workspace: Path) -> None:
    good = {"query": "q", "document": "d", "wrong": ["n"]}
    rows = [good | {"scores": of} for of in ([1], [1, 2, 3], ["high", 1], [1, "0.5"])]
    missing = "not one score for each document and negative"
    assert found(rows, "scores") == ({"d": {"": 1, "n": 0.5}}, [missing, missing, "score is not a number"])


@pytest.mark.parametrize("scored", [False, True])
def test_pairs_have_the_column_only_if_their_domain_has_scores(workspace: Path, scored: bool) -> None:
    row = {"query": "q", "document": "d", "wrong": ["n"], "scores": [1, 2]}
    found([row], *(["scores"] if scored else []))
    schema = SCORED_PAIRS if scored else PAIRS_SCHEMA
    assert pq.read_schema(pairs_file(PAIRS, "d")).remove_metadata() == schema
