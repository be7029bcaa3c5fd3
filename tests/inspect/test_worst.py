"""``batchwright show`` and ``--worst``: measures of all batches."""

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchwright.core.files import read_tsv
from batchwright.formats.shards import ShardSet, unpack_mask
from tests.inspect.conftest import Ask

AskJson = Callable[..., Any]


def measured() -> list[dict[str, Any]]:
    """The stage's own table."""
    rows = read_tsv(Path("results/pack/contextual.tsv"), made_by="pack")
    return [{name: float(value) if name != "domain" else value for name, value in row.items()} for row in rows]


def test_masked_batches_come_in_order_with_the_stage_s_own_measures(ask_json: AskJson) -> None:
    rows = measured()
    found = ask_json("show", "--worst", "masked")
    assert [batch["masked_share"] for batch in found] == pytest.approx(
        sorted((row["masked_share"] for row in rows), reverse=True)[:10], abs=1e-5
    )
    for batch in found:
        row = rows[batch["batch"]]
        assert (batch["domain"], batch["epoch"]) == (row["domain"], row["epoch"])
        assert batch["hardness"] == pytest.approx(row["unmasked_hardness"], abs=1e-4)
        assert batch["rows_mostly_masked"] == row["rows_mostly_masked"]
        for reason, share in batch["masked_by"].items():
            assert share == pytest.approx(row[f"masked_{reason}"], abs=1e-5)


@pytest.mark.parametrize(("by", "sign"), [("easiest", 1), ("hardest", -1)])
def test_hardness_is_compared_within_a_domain_and_epoch(ask_json: AskJson, by: str, sign: int) -> None:
    rows, usual = measured(), defaultdict(list)
    for row in rows:
        usual[row["domain"], row["epoch"]].append(row["unmasked_hardness"])
    above = [row["unmasked_hardness"] - np.mean(usual[row["domain"], row["epoch"]]) for row in rows]
    expected = sorted(above, key=lambda value: sign * value)[:10]
    assert [batch["unusual"] for batch in ask_json("show", "--worst", by)] == pytest.approx(expected, abs=1e-4)


def test_repetition_is_the_share_of_pairs_that_met_in_an_earlier_epoch(ask_json: AskJson) -> None:
    shards = ShardSet.open("data/shards/contextual")
    pairs = [set(combinations(sorted(shards.batch(number)["id"].to_pylist()), 2)) for number in range(len(shards))]
    second = shards.manifest.epochs[1].first_batch
    first = set().union(*pairs[:second])
    expected = sorted((len(met & first) / len(met) for met in pairs[second:]), reverse=True)[:10]
    found = [batch["met_before"] for batch in ask_json("show", "--worst", "repeated")]
    assert found == pytest.approx(expected, abs=1e-5)
    assert found[0] > 0


def test_the_overview_counts_batches_and_mostly_masked_rows_by_domain_and_epoch(ask: Ask, ask_json: AskJson) -> None:
    shards = ShardSet.open("data/shards/contextual")
    found = ask_json("show")
    assert sum(group["batches"] for group in found["domains"]) == len(shards) == found["batches"]
    assert [(group["domain"], group["epoch"]) for group in found["domains"]] == [
        (domain, epoch) for domain in ("birds", "fish") for epoch in (0, 1)
    ]
    masks = [unpack_mask(shards.batch(number)["mask"].to_pylist(), 8) for number in range(len(shards))]
    mostly = sum(int((mask.sum(axis=1) > 3.5).sum()) for mask in masks)
    assert sum(group["rows_mostly_masked"] for group in found["domains"]) == mostly > 0
    assert found["left_over"] == [sum(epoch.left_over.values()) for epoch in shards.manifest.epochs]
    assert ask("show").startswith(f"data/shards/contextual · {len(shards)} contextual batches of 8 in 2 epochs")


def test_the_worst_are_printed_as_a_table(ask: Ask) -> None:
    lines = ask("show", "--worst", "easiest").splitlines()
    assert lines[0] == "Worst batches: far easier than others of their domain and epoch"
    assert lines[1].split() == ["batch", "epoch", "domain", "hardness", "than", "others", "masked", "met", "before"]
    assert len(lines) == 12
