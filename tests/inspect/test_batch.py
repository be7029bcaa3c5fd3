"""``batchwright show N``: a batch and its rows, checked against the shards and the planted vectors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from batchwright.core.atomic import CHECKSUMS
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import read_pairs
from batchwright.formats.shards import REASONS, Manifest, ShardSet, read_reasons, write_shard
from batchwright.formats.shards.shard_set import SCHEMAS
from batchwright.inspect.evidence import Evidence, Filtered, Surrogate
from tests.helpers import annotate_shards, planted_vectors
from tests.inspect.conftest import Ask

AskJson = Callable[..., Any]


def shards() -> ShardSet:
    return ShardSet.open("data/shards/contextual")


def most_masked() -> int:
    reasons = [len(set(read_reasons(shards().batch(number)).ravel())) for number in range(len(shards()))]
    return int(np.argmax(reasons))


def scores(batch: dict[str, list[str]]) -> np.ndarray:
    return planted_vectors(batch["query"]).astype(np.float32) @ planted_vectors(batch["document"]).astype(np.float32).T


def test_every_masked_cell_is_listed_with_its_reason(ask_json: AskJson) -> None:
    seen = set()
    for number in range(len(shards())):
        reasons = read_reasons(shards().batch(number))
        found = ask_json("show", number)
        expected = {(i, j): REASONS[reasons[i, j]] for i, j in np.argwhere(reasons >= 0).tolist()}
        assert {(cell["query"], cell["document"]): cell["reason"] for cell in found["masked"]} == expected
        assert found["masked_by"] == {name: list(expected.values()).count(name) for name in set(expected.values())}
        seen |= set(expected.values())
    assert seen == set(REASONS)


def test_a_batch_has_its_texts_and_the_measures_of_its_rows(ask_json: AskJson) -> None:
    found, batch = ask_json("show", 3), shards().batch(3).to_pydict()
    for name in ("id", "query", "document", "cluster"):
        assert [row[name] for row in found["rows"]] == batch[name]
    similarities, reasons = scores(batch), read_reasons(shards().batch(3))
    left = (reasons < 0) & ~np.eye(8, dtype=bool)
    assert found["hardness"] == pytest.approx(similarities[left].mean(), abs=1e-4)
    assert found["masked_share"] == pytest.approx((reasons >= 0).sum() / 56, abs=1e-5)
    assert [row["own_score"] for row in found["rows"]] == pytest.approx(similarities.diagonal().tolist(), abs=1e-4)


@pytest.mark.parametrize("row", [None, 5])
def test_the_hardest_negatives_left_are_the_best_scored_that_are_not_masked(ask_json: AskJson, row: int | None) -> None:
    number = most_masked()
    found = ask_json("show", number, *([] if row is None else ["--row", row]))
    similarities, reasons = scores(shards().batch(number).to_pydict()), read_reasons(shards().batch(number))
    cells = [(i, j) for i, j in np.argwhere(reasons < 0).tolist() if i != j and row in (None, i)]
    expected = sorted((similarities[i, j] for i, j in cells), reverse=True)[:10]
    assert [cell["score"] for cell in found["hardest"]] == pytest.approx(expected, abs=1e-4)
    assert all((cell["query"], cell["document"]) in cells for cell in found["hardest"])


def test_a_reason_names_only_the_limits_that_there_are() -> None:
    two = np.zeros(2, np.int32)
    surrogate = Surrogate(scores=np.full((2, 2), 0.7, np.float32), likeness=np.full((2, 2), 0.9, np.float32))
    said = []
    for threshold, likeness in ((-np.inf, 0.8), (0.6, -2.0), (0.6, 0.8)):
        negatives = Negatives(
            scores=np.ones(2, np.float32),
            thresholds=np.full(2, threshold, np.float32),
            likeness=np.float32(likeness),
            query_class=two,
            document_class=two,
            dropped=two.astype(np.uint8),
            mined=np.empty((2, 0), np.int32),
        )
        filtered = Filtered(negatives=negatives, ids=pa.array(["a", "b"]), rows=np.arange(2), asking=np.arange(2))
        evidence = Evidence(surrogate=surrogate, filtered=filtered, judge=False, missing=[])
        said.append(evidence.why("score", 0, 1).removeprefix("scored like an answer: "))
    assert said == ["0.70; alike 0.90, limit 0.80", "0.70, limit 0.60", "0.70, limit 0.60; alike 0.90, limit 0.80"]


def test_a_row_says_why_each_of_its_documents_is_masked(ask: Ask, ask_json: AskJson) -> None:
    ids = {name: read_pairs(Path("data/pairs"), name, "train")["id"].to_pylist() for name in ("birds", "fish")}
    said = set()
    for number in range(len(shards())):
        batch, reasons = shards().batch(number).to_pydict(), read_reasons(shards().batch(number))
        negatives = Negatives.read(Path("data/negatives"), domain := batch["domain"][0], len(ids[domain]))
        rows = [ids[domain].index(name) for name in batch["id"]]
        for cell in ask_json("show", number)["masked"]:
            i, j, why = cell["query"], cell["document"], cell["why"]
            said.add(cell["reason"])
            if cell["reason"] == "score":
                score, limit = scores(batch)[i, j], negatives.thresholds[rows[i]]
                assert why.startswith(f"scored like an answer: {score:.2f}, limit {limit:.2f}; alike ")
                assert why.endswith(", limit 0.30")
            elif cell["reason"] == "known_positive":
                other = next(row for row, name in enumerate(ids[domain]) if name.startswith(why.split()[-1]))
                assert negatives.query_class[other] == negatives.query_class[rows[i]]
                assert negatives.document_class[other] == negatives.document_class[rows[j]]
            else:
                texts = {"duplicate": "a duplicate of its own document", "judged": "judged to answer this query"}
                assert why == texts[cell["reason"]]
        printed = ask("show", number, "--row", 0)
        assert f"{(reasons[0] >= 0).sum()} of 7 negatives masked" in printed
        for j in np.flatnonzero(reasons[0] >= 0):
            assert f"masked {j:>4} " in printed
    assert said == set(REASONS)


def test_long_lists_say_what_they_leave_out_and_full_shows_it(ask: Ask) -> None:
    number = max(range(len(shards())), key=lambda number: (read_reasons(shards().batch(number)) >= 0).sum())
    count = int((read_reasons(shards().batch(number)) >= 0).sum())
    assert count > 10
    short, full = ask("show", number), ask("show", number, "--full")
    assert f"Masked (10 of {count}; --full shows all)" in short
    assert f"Masked ({count})" in full
    assert len(full.splitlines()) == len(short.splitlines()) + count - 10


def test_without_vectors_the_shard_alone_says_why(no_vectors: None, ask: Ask, ask_json: AskJson) -> None:
    found = ask_json("show", most_masked())
    assert found["hardest"] == []
    assert {cell["reason"] for cell in found["masked"]} <= set(REASONS)
    text = "no scores: the vectors that these batches were masked with are not in data/vectors"
    assert found["missing"] == [text]
    assert text in ask("show", 0, "--row", 1)


def test_a_folder_of_shards_alone_is_shown_as_well(project: Path, ask: Ask, ask_json: AskJson) -> None:
    Path("data/shards/contextual").rename("alone")
    found = ask_json("show", 4, "--row", 2, "--shards", "alone")
    assert found["focus"] == 2
    assert len(found["missing"]) == 2
    assert "Row" not in ask("show", 4, "--shards", "alone").splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", 99], "batchwright show: error: no batch 99: data/shards/contextual has batches 0 to 29\n"),
        (["show", 0, "--row", 8], "error: no row 8: data/shards/contextual has rows 0 to 7"),
        (["show", "--row", 3], "error: --row needs the number of a batch before it"),
        (["show", "3", "--worst", "masked"], "error: --worst takes no batch and no words"),
        (["show", "--shards", "randon"], "no shards of this name in data/shards; did you mean 'random'?"),
        (["show", "no such words"], "no query in data/pairs has all the words of 'no such words', and no id begins so"),
        (["diff", "random", "data"], "data/manifest.json: no such file; run the stage 'pack' first"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(refuse: Ask, arguments: list[object], message: str) -> None:
    error = refuse(*arguments)
    assert message in error
    assert len(error.splitlines()) == 1


def test_outside_of_a_project_the_message_says_what_to_do(refuse: Ask, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    message = (
        "contextual: no such folder, and no shards of this name in data/shards; run dvc repro pack in the project's"
    )
    assert message in refuse("show")


def test_what_the_source_says_of_a_pair_is_shown(project: Path, ask: Ask, ask_json: AskJson) -> None:
    annotate_shards(Path("data/shards/contextual"))
    name = shards().batch(0)["id"][2].as_py()
    rows = ask_json("show", 0)["rows"]
    assert [row["weight"] for row in rows] == [n / 2 for n in range(1, 9)]
    assert rows[0]["metadata"] == {} and rows[2]["metadata"] == {"place": "2", "their id": name}
    printed = ask("show", 0, "--row", 2).splitlines()
    assert [line.split(maxsplit=1) for line in printed if line.startswith(("weight", "place"))] == [
        ["weight", "1.5"],
        ["place", "2"],
    ]
    assert f"their id    {name}" in printed
    assert "metadata" in ask("show", 0) and "weight: 0.5" in ask("show", 0, "--full")


def test_shards_of_the_first_format_are_shown_with_what_they_kept(ask: Ask, ask_json: AskJson, refuse: Ask) -> None:
    number = most_masked()
    before = ask_json("show", number)
    worst = [batch["batch"] for batch in ask_json("show", "--worst", "masked")]
    make_old(Path("data/shards/contextual"))
    after = ask_json("show", number)
    assert [row["query"] for row in after["rows"]] == [row["query"] for row in before["rows"]]
    cells = [[(cell["query"], cell["document"]) for cell in found["masked"]] for found in (before, after)]
    assert cells[0] == cells[1] != []
    assert set(after["masked_by"]) == {"unknown"}
    assert after["hardness"] is None
    told = "no reasons, hardness and clusters: an older version made these shards; run the stage 'pack' again"
    assert told in after["missing"]
    assert told in ask("show", number)
    assert "unknown" in ask("diff", "random", "contextual")
    assert [batch["batch"] for batch in ask_json("show", "--worst", "masked")] == worst
    assert "data/shards/contextual: does not say how hard batches are" in refuse("show", "--worst", "hardest")


def make_old(folder: Path) -> None:
    """Write shards anew as the first format had them."""
    shards = ShardSet.open(folder)
    batches = [shards.batch(number).select(SCHEMAS[1].names).cast(SCHEMAS[1]) for number in range(len(shards))]
    for file in [*folder.glob("*.arrow"), folder / CHECKSUMS]:
        file.unlink()
    shard = write_shard(folder / "train-00000-of-00001.arrow", batches)
    Manifest(**shards.manifest.model_dump() | {"format": 1, "shards": [shard]}).write(folder)
