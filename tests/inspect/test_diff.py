"""``batchwright diff A B``, checked against sets of pairs."""

import json
import os
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from batchwright.core.atomic import CHECKSUMS
from batchwright.core.files import read_json, read_tsv
from batchwright.formats.shards import ShardSet
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from tests.helpers import plant_vectors, topic_pairs, write_pairs, write_params
from tests.inspect.conftest import Ask

AskJson = Callable[..., Any]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contextual batches of other parameters: ``fish`` has five pairs less, and ``frogs`` are new."""
    folder, before = tmp_path_factory.mktemp("other"), Path.cwd()
    os.chdir(folder)
    try:
        write_params(folder, {"base.seed": 2, "pack.epochs": 1, "pack.left_over": "refill", "cluster.cluster_size": 8})
        write_pairs("fish", topic_pairs(45, seed=1)[:40])
        write_pairs("frogs", topic_pairs(20, seed=5))
        plant_vectors()
        judge.main()
        cluster.main()
        pack.main("contextual")
    finally:
        os.chdir(before)
    return folder / "data/shards/contextual"


def meetings(shards: ShardSet) -> list[set[tuple[str, str]]]:
    return [set(combinations(sorted(shards.batch(number)["id"].to_pylist()), 2)) for number in range(len(shards))]


def pairs(shards: ShardSet) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for batch in shards.columns("id", "domain"):
        found.setdefault(batch["domain"][0].as_py(), set()).update(batch["id"].to_pylist())
    return found


def test_a_set_does_not_differ_from_itself(ask: Ask, ask_json: AskJson) -> None:
    found = ask_json("diff", "random", "random")
    assert (found["parameters"], found["lost"], found["gained"]) == ([], {}, {})
    assert found["meet_in_both"] == {"name": "meet in both", "a": 1, "b": 1}
    assert all(group[name]["a"] == group[name]["b"] for group in found["groups"] for name in ("batches", "hardness"))
    assert "Same policy, seed, models and parameters" in ask("diff", "random", "random")


def test_pairs_gained_and_lost_are_listed_by_domain(ask: Ask, ask_json: AskJson, other: Path) -> None:
    found = ask_json("diff", "contextual", other)
    before, after = (pairs(ShardSet.open(folder)) for folder in ("data/shards/contextual", other))
    assert set(found["lost"]) == {"birds", "fish"}
    fish = after["fish"] - before["fish"]  # what the filter dropped before
    assert {name: set(ids) for name, ids in found["gained"].items()} == {"frogs": after["frogs"], "fish": fish}
    assert set(found["lost"]["fish"]) == before["fish"] - after["fish"]
    assert found["both"] == len(before["fish"] & after["fish"])
    assert (found["pairs"]["a"], found["pairs"]["b"]) == tuple(sum(map(len, side.values())) for side in (before, after))
    printed = ask("diff", "contextual", other)
    assert f"{len(after['frogs'])} gained in frogs" in printed
    assert all(any(name[:12] in line for name in after["frogs"]) for line in printed.splitlines() if " q5 " in line)
    assert " q5 " in printed


def test_meetings_in_both_equal_a_count_of_all(ask_json: AskJson, other: Path) -> None:
    for b in ("data/shards/random", other):
        found = ask_json("diff", "contextual", b)["meet_in_both"]
        first, second = (meetings(ShardSet.open(folder)) for folder in ("data/shards/contextual", b))
        for side, own, others in (("a", first, set().union(*second)), ("b", second, set().union(*first))):
            assert found[side] == pytest.approx(sum(len(met & others) / len(met) for met in own) / len(own), abs=1e-5)


def test_parameters_that_differ_are_named(ask: Ask, ask_json: AskJson, other: Path) -> None:
    found = {each["name"]: (each["a"], each["b"]) for each in ask_json("diff", "contextual", other)["parameters"]}
    assert found == {
        "seed": (1, 2),
        "pack.epochs": (2, 1),
        "pack.left_over": ("drop", "refill"),
        "pack.cluster_share": ([0.0, 1.0], [1.0]),
        "cluster.cluster_size": (16, 8),
        "filter.judgements": (["raw/judgements/said.jsonl"], []),
        "filter.likeness": (0.3, None),
        "likeness.fish": (0.3, None),
    }
    printed = ask("diff", "contextual", other)
    for line in (r"pack.left_over +drop +refill", r"cluster.cluster_size +16 +8", r"likeness.fish +0.3 +-"):
        assert re.search(f"^{line}$", printed, re.MULTILINE)


def test_older_shards_do_not_say_how_they_were_clustered(ask_json: AskJson, other: Path) -> None:
    manifest = Path("data/shards/random/manifest.json")
    values = json.loads(manifest.read_text())
    del values["made_with"], values["likeness"]
    Path("data/shards/random", CHECKSUMS).unlink()
    manifest.write_text(json.dumps(values))
    names = [each["name"] for each in ask_json("diff", "random", other)["parameters"]]
    assert "policy" in names
    assert not [name for name in names if name.startswith(("filter", "cluster", "likeness"))]


def test_hardness_and_masks_are_those_of_the_stage_by_domain_and_epoch(ask_json: AskJson) -> None:
    found = ask_json("diff", "contextual", "random")
    for side, policy in (("a", "contextual"), ("b", "random")):
        rows = read_tsv(Path(f"results/pack/{policy}.tsv"), made_by="pack")
        for group in found["groups"]:
            own = [row for row in rows if (row["domain"], int(row["epoch"])) == (group["domain"], group["epoch"])]
            assert group["batches"][side] == len(own) > 0
            for name, column in (("hardness", "unmasked_hardness"), ("masked_share", "masked_share")):
                mean = sum(float(row[column]) for row in own) / len(own)
                assert group[name][side] == pytest.approx(mean, abs=1e-4)
        shares = read_json(Path(f"results/pack/{policy}.json"), made_by="pack")["masked_by"]
        assert {each["name"]: each[side] for each in found["masked_by"]} == pytest.approx(shares, abs=1e-5)


def test_a_domain_of_only_one_set_has_no_value_in_the_other(ask: Ask, ask_json: AskJson, other: Path) -> None:
    groups = ask_json("diff", "contextual", other)["groups"]
    (frogs,) = (group for group in groups if group["domain"] == "frogs")
    assert frogs["batches"] == {"name": "batches", "a": None, "b": 3}
    assert "frogs       0          -  3" in ask("diff", "contextual", other)
