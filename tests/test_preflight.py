"""Stages compare what they will take of memory and disk with what is free, before they write anything."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchwright.core import room
from batchwright.core.errors import InputError
from batchwright.formats.prefixes import Prefix
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.xtr.model import save_token_model
from stages.baselines import stage as baselines
from stages.cluster import stage as cluster
from stages.evaluate import stage as evaluate
from stages.fetch import stage as fetch
from stages.filter import stage as judge
from stages.mine import stage as mine
from stages.pack import stage as pack
from stages.pretrain import stage as pretrain
from stages.tokens import stage as tokens
from tests.helpers import plant_vectors, topic_pairs, write_params, write_rows
from tests.pretraining.toys import PARAMS
from tests.train.toys import describe
from trainers.xtr.start import start_from

MINING = {"model": "models/first", "count": 2, "depth": 5}
GROUPS: dict[str, Any] = {"mine": {"again": MINING}, "pretrain": {"made": PARAMS}}
MADE: dict[str, tuple[Callable[[], str], str]] = {
    "filter": (judge.main, "data/negatives"),
    "cluster": (cluster.main, "data/clusters"),
    "mine": (lambda: mine.main("again"), "data/shards/again"),
    "pretrain": (lambda: pretrain.main("made"), "models/start/made"),
    "fetch": (lambda: fetch.main("copied"), "models/start/copied"),
    "fetch static": (lambda: fetch.main("static"), "models/start/static"),
    "baselines": (baselines.main, "data/scores"),
    "evaluate": (lambda: evaluate.main("first"), "data/scores"),
    "tokens": (lambda: tokens.main("xtr"), "results/tokens"),
}
"""What runs a stage, and what it makes."""


@pytest.fixture
def project(workspace: Path, tiny_bert: Path) -> Path:
    """Pairs and vectors, models and contextual batches."""
    pairs = topic_pairs(60)
    write_rows("birds", [(*pair, "test" if number < 6 else "train") for number, pair in enumerate(pairs)])
    plant_vectors()
    source = shutil.copytree(tiny_bert, "raw/models/bert")
    for model in ("models/first", "models/start/tiny"):
        describe(Path(shutil.copytree(tiny_bert, model)))
    start = start_from(tiny_bert, ModelInfo(variant="biencoder", max_length=16), "cpu")
    save_token_model(start, Path("models/xtr"), Prefix())
    describe(Path("models/xtr"))
    entry = {"name": str(source), "max_length": 8}
    starts = {"copied": entry, "static": {**entry, "static_width": 8}}
    write_params(workspace, {**GROUPS, "start_models": starts})
    judge.main()
    cluster.main()
    pack.main("contextual")
    return workspace


@pytest.mark.parametrize(
    ("stage", "what", "kind"),
    [
        ("filter", "filtering", "disk"),
        ("cluster", "clustering", "disk"),
        ("mine", "mining in domain 'birds'", "memory"),
        ("mine", "mining", "disk"),
        ("pretrain", "the corpus of tokens", "disk"),
        ("pretrain", "training a model .*", "memory"),
        ("pretrain", "training a model .*", "disk"),
        ("fetch", "copying model .*", "disk"),
        ("fetch", "copying model .*", "memory"),
        ("fetch static", "a static model of .* tokens", "disk"),
        ("fetch static", "a static model of .* tokens", "memory"),
        ("baselines", "reading the collections", "memory"),
        ("baselines", "ranking the documents of held_out by words", "memory"),
        ("baselines", "searching with 'models/start/tiny'", "memory"),
        ("baselines", "scores of 6 queries", "disk"),
        ("evaluate", "reading the collections", "memory"),
        ("evaluate", "searching with 'models/first'", "memory"),
        ("evaluate", "scores of 6 queries", "disk"),
        ("tokens", "retrieving tokens of 50 documents", "memory"),
    ],
)
def test_a_stage_that_finds_no_room_makes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, stage: str, what: str, kind: str
) -> None:
    run, made = MADE[stage]
    for folder in (made, ".scratch"):
        shutil.rmtree(folder, ignore_errors=True)
    refuse_only(what, kind, monkeypatch)
    with pytest.raises(InputError, match=f"{what} needs about .* GB of {kind}"):
        run()
    assert not Path(made).exists()


def refuse_only(what: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no room of this kind be free for ``what``, a pattern, and enough for all else."""
    refuse, usage = room._refuse, shutil.disk_usage("/")

    def chosen(asked_for: str, needed: float, free: float, of: str) -> None:
        if re.fullmatch(what, asked_for) and of.startswith(kind):
            refuse(asked_for, needed, free, of)

    monkeypatch.setattr(room, "_refuse", chosen)
    monkeypatch.setattr(room, "free_memory", lambda: 0.0)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=0))
