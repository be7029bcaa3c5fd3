"""``batchwright show WORDS``: what became of a query."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchwright.core.atomic import CHECKSUMS
from batchwright.formats.pairs import read_pairs
from batchwright.formats.shards import ShardSet, read_reasons
from tests.inspect.conftest import HELD_OUT, REJECTED, Ask

AskJson = Callable[..., Any]


def places(name: str) -> list[dict[str, int]]:
    shards, found = ShardSet.open("data/shards/contextual"), []
    second = shards.manifest.epochs[1].first_batch
    for number in range(len(shards)):
        ids = shards.batch(number)["id"].to_pylist()
        found += [{"epoch": int(number >= second), "batch": number, "row": ids.index(name)}] if name in ids else []
    return found


def test_every_training_pair_was_packed_left_over_or_dropped(ask_json: AskJson, dropped: str) -> None:
    left = {0: 0, 1: 0}
    for domain in ("birds", "fish"):
        for pair in read_pairs(Path("data/pairs"), domain, "train").to_pylist()[::4]:
            (found,) = ask_json("show", pair["id"])["pairs"]
            assert (found["domain"], found["query"]) == (domain, pair["query"])
            assert found["places"] == places(pair["id"])
            packed = {place["epoch"] for place in found["places"]}
            assert {each["epoch"] for each in found["left_over"]} == {0, 1} - packed
            assert not found["dropped"]
            for each in found["left_over"]:
                left[each["epoch"]] += 1
                assert re.fullmatch(rf"one of [1-7] of '{pair['domain']}' that do not fill a batch of 8", each["why"])
    assert sum(left.values()) > 0
    (found,) = ask_json("show", dropped)["pairs"]
    assert found["dropped"]
    assert (found["places"], found["left_over"]) == ([], [])


def test_one_command_says_why_each_document_is_masked_in_each_of_its_batches(ask: Ask, ask_json: AskJson) -> None:
    found = ask_json("show", "topic0 list file")
    (pair,) = found["pairs"]
    shards = ShardSet.open("data/shards/contextual")
    assert pair["places"] == places(pair["id"]) != []
    for place, view in zip(pair["places"], found["views"], strict=True):
        masked = (read_reasons(shards.batch(place["batch"]))[place["row"]] >= 0).nonzero()[0].tolist()
        assert [cell["document"] for cell in view["masked"]] == masked
    printed = ask("show", "list", "FILE", "topic0")
    for place in pair["places"]:
        assert f"Epoch {place['epoch']}, batch {place['batch']}, row {place['row']} · " in printed


def test_a_query_is_found_by_words_in_any_case_and_order_and_an_equal_one_stands_for_all(ask_json: AskJson) -> None:
    assert len(ask_json("show", "FILE LIST")["pairs"]) == 1
    many = ask_json("show", "topic1")["pairs"]
    assert len(many) > 10
    assert all("topic1" in pair["query"].casefold() for pair in many)
    (same,) = ask_json("show", HELD_OUT[0].upper())["pairs"]
    assert same["query"] == HELD_OUT[0]


def test_words_in_this_order_come_first(ask_json: AskJson) -> None:
    found = [pair["query"] for pair in ask_json("show", "topic0 q0")["pairs"]]
    ordered = ["topic0 q0" in query.casefold() for query in found]
    assert ordered == sorted(ordered, reverse=True)


def test_a_pair_is_found_by_the_beginning_of_its_id(ask: Ask, ask_json: AskJson) -> None:
    name = read_pairs(Path("data/pairs"), "fish", "train")["id"][7].as_py()
    (pair,) = ask_json("show", name[:9].upper())["pairs"]
    assert pair["id"] == name
    assert name in ask("show", name)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (HELD_OUT[0], "held out for testing, never packed"),
        ("topic2 list a file again", "duplicate"),
    ],
)
def test_pairs_that_were_never_packed_are_explained(ask: Ask, asked: str, said: str) -> None:
    assert said in ask("show", asked)


def test_rejected_rows_are_named_with_source_and_reason(ask: Ask, ask_json: AskJson) -> None:
    assert ask_json("show", "list file topic2")["rejects"] == [REJECTED]
    printed = ask("show", "list file")
    assert "Rejected rows with these words (1)" in printed
    assert "duplicate  mine.jsonl    7  topic2 list a file again" in printed


def test_of_a_dropped_pair_the_rule_and_the_score_are_told(ask: Ask, ask_json: AskJson, dropped: str) -> None:
    score = np.load("data/negatives/fish/scores.npy")[2]
    why = f"its own document is not among the best for its query (filter.consistency); its score is {score:.3f}"
    assert f"dropped by the filter: {why}" in " ".join(ask("show", dropped).split())
    assert ask_json("show", dropped)["pairs"][0]["dropped"] == why


def test_a_pair_that_is_left_over_is_told_why(ask: Ask, ask_json: AskJson) -> None:
    def left_over() -> list[str]:
        return [each["why"] for pair in ask_json("show", "topic")["pairs"] for each in pair["left_over"]]

    assert all("do not fill a batch of 8" in why for why in left_over())
    assert "left over, one of" in ask("show", "topic", "--full")
    file = Path("data/shards/contextual/manifest.json")
    (file.parent / CHECKSUMS).unlink()
    manifest = json.loads(file.read_text())
    manifest["parameters"]["weights"] = {"birds": 0.5}
    for epoch in manifest["epochs"]:
        epoch["left_over"]["fish"] = 0
    file.write_text(json.dumps(manifest))
    assert {re.sub(r"of \d ", "of N ", why) for why in left_over()} == {
        "one of N that pack.weights leaves out: it takes 0.5 of 'birds'",
        "these batches are older than the pair",
    }


def test_a_long_list_says_how_many_more_there_are(ask: Ask, ask_json: AskJson) -> None:
    count = len(ask_json("show", "topic")["pairs"])
    assert f"{count} pairs; ask for one by its id" in ask("show", "topic")
    assert f"and {count - 20} more; --full shows all" in ask("show", "topic")
    assert "more; --full" not in ask("show", "topic", "--full")


def test_shards_alone_are_searched_too(project: Path, ask_json: AskJson) -> None:
    shutil.rmtree("data/pairs")
    found = ask_json("show", "list file")
    (pair,) = found["pairs"]
    assert pair["places"] == places(pair["id"])
    assert len(found["views"]) == len(pair["places"])
