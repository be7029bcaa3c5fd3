"""``python -m stages mine``: the same batches, with other hard negatives."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.core.fingerprint import content_id
from batchwright.export import export
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import PAIRS_SCHEMA, InMemory, pairs_file, read_pairs, write_table
from batchwright.formats.shards import ShardSet
from batchwright.formats.vectors import VectorStore
from project.__main__ import main as project
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.mine import stage as mine
from stages.pack import stage as pack
from tests.helpers import annotate_shards, plant_vectors, run_stage, topic_pairs, tree, write_params
from tests.pack.corpora import prepare
from tests.tiny_models import save_bert
from tests.train.toys import describe, retrieve

ROUND = Path("data/shards/again")
MINING = {"model": "models/first", "count": 3, "depth": 25}
RunMine = Callable[[], str]


@pytest.fixture
def run_mine(workspace: Path) -> RunMine:
    prepare(birds=topic_pairs(40), fish=topic_pairs(30, seed=1))
    shutil.copytree(save_bert(Path("made")), "models/first")
    describe(Path("models/first"))
    write_params(workspace, {"mine": {"again": MINING}})
    pack.main("contextual")
    return lambda: mine.main("again")


def test_batches_stay_and_negatives_are_the_best_ranked_that_are_not_positives(run_mine: RunMine) -> None:
    assert run_mine().startswith("again: ")
    before, after = ShardSet.open(Path("data/shards/contextual")), ShardSet.open(ROUND)
    after.verify()
    assert len(before) == len(after)
    allowed = {
        row["id"]: texts
        for domain in ("birds", "fish")
        for row, texts in zip(read_pairs(Path("data/pairs"), domain).to_pylist(), by_hand(domain), strict=True)
    }
    for number in range(len(before)):
        old, new = before.batch(number), after.batch(number)
        assert old.drop_columns(["negatives"]).equals(new.drop_columns(["negatives"]))
        for row in new.to_pylist():
            assert row["negatives"] == allowed[row["id"]]
    assert after.manifest.models["miner"]
    assert f"miner: {after.manifest.models['miner']}" in (ROUND / "README.md").read_text(encoding="utf-8")
    counted = read_json(Path("results/mine/again.json"), made_by="mine")
    assert counted["pairs"] == 70
    assert counted["mined"] + counted["missing"] == 210
    assert counted["mined"] > 100


def test_shards_say_how_their_negatives_were_mined(run_mine: RunMine, capsys: pytest.CaptureFixture[str]) -> None:
    assert not run_mine().endswith("replace those that the batches had")
    assert ShardSet.open(ROUND).manifest.made_with["mine"]["depth"] == 25
    assert "depth: 25" in (ROUND / "README.md").read_text(encoding="utf-8")
    project(["diff", "contextual", "again"])
    with_negatives = sum(bool(row["negatives"]) for row in rows_by_id(ROUND).values())
    printed = capsys.readouterr().out
    assert (
        f"{with_negatives} of both have other hard negatives in their first batches" in printed
        and "mine.depth" in printed
    )
    row = ShardSet.open(ROUND).batch(0).to_pylist()[0]
    project(["show", "0", "--row", "0", "--shards", "again"])
    shown = " ".join(capsys.readouterr().out.split())
    assert len(row["negatives"]) == 3 and all(f"negative {text}" in shown for text in row["negatives"])


def test_negatives_of_the_source_are_replaced_and_that_is_said(run_mine: RunMine, workspace: Path) -> None:
    for domain in ("birds", "fish"):
        rows = [row | {"negatives": ["a", "b"]} for row in read_pairs(Path("data/pairs"), domain).to_pylist()]
        write_table(pairs_file(Path("data/pairs"), domain), pa.Table.from_pylist(rows), PAIRS_SCHEMA)
    plant_vectors()
    judge.main()
    cluster.main()
    write_params(workspace, {"pack.hard_negatives": 1, "mine": {"again": MINING}})
    pack.main("contextual")
    assert {len(row["negatives"]) for row in rows_by_id(Path("data/shards/contextual")).values()} == {1}
    assert run_mine().endswith("; they replace those that the batches had")
    assert "pack.hard_negatives" not in export(ROUND, Path("pairs.jsonl"), file_format="tevatron")


def rows_by_id(shards: Path) -> dict[str, dict[str, Any]]:
    opened = ShardSet.open(shards)
    return {row["id"]: row for number in range(len(opened)) for row in opened.batch(number).to_pylist()}


def test_what_was_mined_is_exported(run_mine: RunMine) -> None:
    annotate_shards(Path("data/shards/contextual"))
    run_mine()
    assert "their id" in ShardSet.open(ROUND).batch(0)["metadata"][1].as_py()
    said = export(ROUND, Path("pairs.parquet"), 3)
    exported = pq.read_table("pairs.parquet").to_pylist()
    rows = rows_by_id(ROUND).values()
    whole = [(row["query"], row["document"], *row["negatives"]) for row in rows if len(row["negatives"]) == 3]
    assert sorted(tuple(row.values()) for row in exported) == sorted(whole) != []
    assert list(exported[0]) == ["anchor", "positive", "negative_1", "negative_2", "negative_3"]
    assert said.startswith(f"{len(whole)} pairs with 3 hard negatives in pairs.parquet")


def by_hand(domain: str) -> list[list[str]]:
    """For each query, walk down the model's ranking."""
    pairs = read_pairs(Path("data/pairs"), domain)
    documents = pairs["document"].to_pylist()
    negatives = Negatives.read(Path("data/negatives"), domain, len(pairs))
    vectors = VectorStore.open(Path("data/vectors/planted")).of(domain).of_pairs([InMemory(pairs.to_batches())])
    scores = vectors.queries(np.arange(len(pairs))) @ vectors.documents(np.arange(len(pairs))).T
    ranked, _ = retrieve(Path("models/first"), pairs["query"].to_pylist(), documents, len(pairs), 16)
    return [
        [documents[row] for row in own[:26] if scores[query, row] < negatives.thresholds[query] and row != query][:3]
        for query, own in enumerate(ranked)
    ]


@pytest.mark.parametrize("damaged", [False, True])
def test_a_second_run_and_a_resumed_one_give_the_same_bytes(
    run_mine: RunMine, damaged: bool, monkeypatch, capsys
) -> None:
    run_mine()
    first = tree(ROUND)
    choose, calls = mine.choose_negatives, []

    def die_at_the_second(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return choose(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(mine, "choose_negatives", die_at_the_second)
    shutil.rmtree(".scratch/mine")
    with pytest.raises(KeyboardInterrupt):
        run_mine()
    if damaged:
        [file] = Path(".scratch/mine").rglob("*.npy")
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    run_mine()
    assert len(calls) == 3 + damaged
    warned = "/mine/" in (told := capsys.readouterr().err) and "damaged; this part of the work is done again" in told
    assert warned == damaged
    assert tree(ROUND) == first
    run_mine()
    assert len(calls) == 3 + damaged, "a later run does nothing again"
    prepare(cats=topic_pairs(20, seed=2))
    run_mine()
    assert len(calls) == 4 + damaged, "a new domain leaves the others as they are"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 30}, "30 negatives cannot come from ranks 1 to 25"),
        ({"model": "models/nothing"}, "model 'models/nothing': no such folder"),
        (
            {"join": ["models/second"]},
            "a miner to join is 'bm25' or a model in models/start: of the others, DVC",
        ),
        ({"model": "bm25"}, "'bm25' is no folder, which DVC could watch; write 'model: raw/models' and 'name: bm25'"),
        (
            {"name": "bm25"},
            "'name: bm25' counts instead of 'models/first'; write 'model: raw/models', or remove 'name'",
        ),
        ({"model": "made"}, "model 'made': has no batchwright.json"),
        ({"modl": "models/first"}, "unknown parameter 'mine.again.modl'; did you mean 'model'"),
    ],
)
def test_what_cannot_be_mined_is_refused(run_mine: RunMine, workspace: Path, change, message) -> None:
    write_params(workspace, {"mine": {"again": MINING | change}})
    with pytest.raises(InputError, match=message):
        run_mine()
    assert not ROUND.exists()


@pytest.mark.parametrize("change", ["first gone", "last gone", "replaced", "domain gone"])
def test_shards_of_other_pairs_are_refused(run_mine: RunMine, change: str) -> None:
    run_mine()
    before = tree(ROUND)
    birds = sorted(topic_pairs(40), key=lambda pair: content_id("birds", *pair))
    fish = topic_pairs(30, seed=1)
    left = {"first gone": birds[1:], "last gone": birds[:-1], "replaced": [("topic0 new", "topic0 text"), *birds[1:]]}
    Path("data/pairs/birds.parquet").unlink()
    prepare(fish=fish, **({} if change == "domain gone" else {"birds": left[change]}))
    with pytest.raises(
        InputError,
        match=r"data/shards/contextual: pair \w{32} of domain 'birds' is no training pair; run the stage 'pack' again",
    ):
        run_mine()
    assert tree(ROUND) == before


def test_an_unknown_entry_is_a_one_line_error(run_mine: RunMine, workspace: Path, warm: Path) -> None:
    done = run_stage("mine", "agian", cwd=workspace, programs=warm)
    assert done.returncode == 1
    assert "no parameter group 'mine.agian'; did you mean 'again'" in done.stderr
    assert "Traceback" not in done.stderr
