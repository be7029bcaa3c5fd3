"""What a night's data are like, and when that has changed too much."""

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchwright.formats.pairs import read_pairs
from project.retrain.drift import DriftParams, drift, figures, locked_data, newest_doubtful
from tests.filter.planted import without_duplicates
from tests.helpers import write_rows

LIMITS = DriftParams()
BEFORE: dict[str, Any] = {
    "rejected": 0.01,
    "domains": {
        "shop": {
            "pairs": 2000,
            "query": 40.0,
            "document": 300.0,
            "doubtful": 0.08,
            "masked": 0.02,
            "hardness": 0.3,
            "recipe": [[0.0, 0.5], False],
        },
        "small": {"pairs": 30, "query": 10.0, "document": 10.0, "doubtful": 0.0, "masked": 0.0, "hardness": 0.1},
    },
}


def changed(domain: str = "shop", **figures: Any) -> list[str]:
    now = deepcopy(BEFORE)
    now["domains"][domain] |= figures
    return drift(BEFORE, now, LIMITS)


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ({"doubtful": 0.14}, "shop: doubtful pairs 0.080 -> 0.140"),
        ({"masked": 0.2}, "shop: masked negatives 0.020 -> 0.200"),
        ({"hardness": 0.1}, "shop: hardness 0.3 -> 0.1"),
        ({"document": 120.0}, "shop: characters of a document 300.0 -> 120.0"),
        ({"query": 120.0}, "shop: characters of a query 40.0 -> 120.0"),
        ({"pairs": 900}, "shop: 2,000 pairs -> 900"),
        ({"pairs": 0}, "shop: 2,000 pairs -> none any more"),
    ],
)
def test_a_jump_is_told(figures: Mapping[str, Any], told: str) -> None:
    assert changed(**figures) == [told]


def test_some_more_good_rows_are_none() -> None:
    assert changed(pairs=2025, query=41.0, document=310.0, doubtful=0.082, masked=0.03, hardness=0.31) == []
    assert changed(pairs=9000) == [], "nor many more"


def test_a_share_of_few_pairs_may_change_by_chance() -> None:
    then, now = (
        {"rejected": 0.0, "domains": {"new": {"pairs": pairs, "query": 9.0, "document": 9.0, "doubtful": share}}}
        for pairs, share in ((100, 0.05), (125, 0.12))
    )
    assert drift(then, now, LIMITS) == []
    now["domains"]["new"]["doubtful"] = 0.25  # type: ignore[index]
    assert drift(then, now, LIMITS) == ["new: doubtful pairs 0.050 -> 0.250"]


def test_of_few_pairs_only_the_last_counts() -> None:
    assert changed("small", pairs=55, query=30.0, doubtful=0.4) == []
    assert changed("small", pairs=10) == []
    now = deepcopy(BEFORE)
    del now["domains"]["small"]
    now["rejected"] = 0.2
    assert drift(BEFORE, now, LIMITS) == ["rejected rows 0.010 -> 0.200", "small: 30 pairs -> none any more"]


def test_batches_by_another_recipe_are_not_compared() -> None:
    assert changed(hardness=0.1, masked=0.3, recipe=[[0.0], False]) == []


def test_pairs_are_named_where_more_are_doubtful_and_only_there() -> None:
    now = deepcopy(BEFORE)
    now["domains"]["shop"] |= {"doubtful": 0.14, "masked": 0.2}
    lines = drift(BEFORE, now, LIMITS, lambda domain: f"; such as those of {domain}")
    assert lines[0] == "shop: doubtful pairs 0.080 -> 0.140; such as those of shop"
    assert len(lines) == 2 and "such as" not in lines[1]
    assert "such as" not in drift(now, BEFORE, LIMITS, lambda _: "; such as")[0], "fewer are none to be looked for"


def test_the_new_pairs_that_fit_least_are_named(workspace: Path) -> None:
    earlier = [(f"q{number}", f"d{number}", "train") for number in range(4)]
    write_rows("shop", earlier)
    Path("data/pairs").rename("before")
    rows = [*earlier, *((f"new {number}", f"text {number}", "train") for number in range(5)), ("held", "out", "test")]
    write_rows("shop", rows)
    queries = [pair["query"] for pair in read_pairs(Path("data/pairs"), "shop", "train").to_pylist()]
    scores = np.array([float(query[-1]) if query.startswith("new") else 0 for query in queries], np.float32)
    without_duplicates(scores, scores).write(Path("data/negatives"), "shop")
    named = "'new 0' with 'text 0'; 'new 1' with 'text 1'; 'new 2' with 'text 2'"
    assert newest_doubtful("shop", Path("before")) == f"; of 5 new pairs, these fit least: {named}"
    assert newest_doubtful("shop", Path("data/pairs")) == "", "none is new"


def test_figures_are_those_of_the_artifacts(workspace: Path) -> None:
    write_rows("shop", [("ab", "ü" * 10, "train"), ("abcd", "b" * 20, "test")])
    rejected = {"in": 20, "rejected": {"duplicate": 7, "empty": 2}}
    for name, values in {
        "ingest": {"sources": {"0 a": rejected}},
        "filter": {"shop": {"pairs": 4, "doubtful": 1, "likeness": 0.5}},
        "pack/contextual": {"domains": {"shop": {"masked_share": 0.1, "hardness": 0.2, "cluster_share": [0.0]}}},
    }.items():
        Path("results/pack").mkdir(parents=True, exist_ok=True)
        Path(f"results/{name}.json").write_text(json.dumps(values))
    shop = {"pairs": 2, "query": 3.0, "document": 15.0, "doubtful": 0.25, "masked": 0.1, "hardness": 0.2}
    assert figures() == {"rejected": 0.1, "domains": {"shop": shop | {"recipe": [[0.0], True]}}}


def test_parameters_of_the_data_are_those_of_the_stages_up_to_pack() -> None:
    lock = "stages: {filter: {params: {params.yaml: {filter: 1}}}, pack@random: {params: 2}, train@m: {params: 3}}"
    assert locked_data(lock, "params") == {"filter": {"params.yaml": {"filter": 1}}, "pack@random": 2}
    assert locked_data(None, "outs") == {}
