"""No query takes most of a test or dev split; it stays in train, in all domains, and the stage says so."""

import json
from pathlib import Path

import pytest

from batchwright.core.fingerprint import text_keys
from tests.ingest.running import Outcome, ingest

SHARES = {"held_out": 0.2, "dev": 0.2}


def queries(low: float, high: float, count: int, name: str = "q") -> list[str]:
    """Queries whose hashes lie between two shares of all: below 0.2 they are in test, above 0.8 in dev."""
    made = [f"{name} {number}" for number in range(40 * count)]
    places = text_keys(made).view("<u8")[::2] / 2.0**64
    return [query for query, place in zip(made, places, strict=True) if low <= place < high][:count]


def write(domain: str, pairs: dict[str, int]) -> dict[str, str]:
    """Write a source in which each query has so many documents, each of them twice."""
    rows = [{"query": query, "document": f"{query} {n}"} for query, count in pairs.items() for n in range(count)] * 2
    Path(f"{domain}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"kind": "jsonl", "path": f"{domain}.jsonl", "domain": domain}


def splits(outcome: Outcome, query: str) -> set[str]:
    return {pair["split"] for pair in outcome.pairs if pair["query"] == query}


@pytest.mark.parametrize(("name", "low"), [("test", 0.0), ("dev", 0.8)])
def test_a_query_with_most_of_a_split_stays_in_train_and_is_told(
    workspace: Path, capsys: pytest.CaptureFixture[str], name: str, low: float
) -> None:
    heavy, *others = queries(low, low + 0.2, 9)
    light = dict.fromkeys([*others, *queries(0.2, 0.8, 20)], 1)
    outcome = ingest(write("a", {heavy: 40, **light}), write("b", {heavy: 1, others[0]: 1}), **SHARES)
    assert splits(outcome, heavy) == {"train"}
    assert all(splits(outcome, query) == {name} for query in others)
    told = f"ingest: warning: '{heavy}' has 40 of 48 {name} pairs of 'a', too many for one query; it stays in train\n"
    told += f"ingest: warning: '{heavy}' is the query of 40 of 68 pairs of 'a', of which none is a negative for another"
    assert capsys.readouterr().err.startswith(told)


def test_several_may_be_too_heavy_and_one_that_leaves_may_make_another_so(workspace: Path) -> None:
    first, second, third, *others = queries(0.0, 0.2, 9)
    light = dict.fromkeys([*others, *queries(0.2, 0.8, 60)], 1)
    in_a, in_b = {first: 100, second: 60, **light}, {first: 30, third: 30, others[0]: 2, **light}
    outcome = ingest(write("a", in_a), write("b", in_b), **SHARES)
    assert [splits(outcome, query) for query in (first, second, third)] == [{"train"}] * 3
    assert splits(outcome, others[0]) == {"test"}


@pytest.mark.parametrize(("name", "low"), [("test", 0.0), ("dev", 0.8)])
def test_if_nothing_else_is_left_to_train_on_the_heaviest_query_stays_in_train(
    workspace: Path, capsys: pytest.CaptureFixture[str], name: str, low: float
) -> None:
    [only] = queries(low, low + 0.2, 1)
    outcome = ingest(write("a", {only: 40}), write("b", {only: 2}), **SHARES)
    assert splits(outcome, only) == {"train"}
    told = capsys.readouterr().err
    assert f"'{only}' has 40 of 40 {name} pairs of 'a', too many for one query; it stays in train\n" in told
    assert "no pair is in test, since there are few queries; raise ingest.held_out\n" in told


def test_all_queries_in_test_because_the_source_says_so_stay_there(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.jsonl").write_text('{"query": "a b", "document": "c", "split": "test"}\n')
    outcome = ingest({"kind": "jsonl", "path": "a.jsonl", "domain": "a", "columns": {"split": "split"}}, dev=0.1)
    assert splits(outcome, "a b") == {"test"}
    assert capsys.readouterr().err == (
        "ingest: warning: no pair is in train: columns.split puts all into others; nothing can be trained\n"
    )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_in_a_small_domain_the_only_query_of_a_split_stays_there(workspace: Path, count: int) -> None:
    [alone], others = queries(0.0, 0.2, 1), queries(0.2, 0.8, 5)
    outcome = ingest(write("a", dict.fromkeys([alone, *others], count)), **SHARES)
    assert splits(outcome, alone) == {"test"}


def test_the_only_query_of_a_split_leaves_it_if_it_is_most_of_the_domain(workspace: Path) -> None:
    [alone], others = queries(0.0, 0.2, 1), queries(0.2, 0.8, 5)
    outcome = ingest(write("a", {alone: 30, **dict.fromkeys(others, 1)}), **SHARES)
    assert {pair["split"] for pair in outcome.pairs} == {"train"}


@pytest.mark.parametrize(("count", "told"), [(30, True), (29, False)])
def test_a_document_of_most_pairs_is_told(
    workspace: Path, capsys: pytest.CaptureFixture[str], count: int, told: bool
) -> None:
    rows = [{"query": f"q {n}", "document": "See above." if n < count else f"answer {n}"} for n in range(59)] * 2
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ingest({"kind": "jsonl", "path": "a.jsonl", "domain": "a"})
    warning = (
        "ingest: warning: 'See above.' is the document of 30 of 59 pairs of 'a', in all splits alike; leave most of "
        "them out if it says little\n"
    )
    assert capsys.readouterr().err == (warning if told else "")
