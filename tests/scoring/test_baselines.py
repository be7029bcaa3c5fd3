"""Stage ``baselines``: BM25 and the start models that the parameters name."""

import json
from pathlib import Path
from typing import Any

import pytest

from batchwright.formats.query_scores import read_query_scores
from stages import baselines
from stages.scoring.retrieval import System, word_system
from tests.helpers import write_params, write_rows

PARAMS: dict[str, Any] = {"start_models": {}, "pretrain": {}}


def test_a_start_model_that_left_the_parameters_is_not_scored(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Path] = []

    def model_system(folder: Path, *settings: Any) -> System:
        loaded.append(folder)
        return word_system(10)

    monkeypatch.setattr(baselines, "model_system", model_system)
    write_rows("shop", [(f"q{number} word{number}", f"d{number} word{number}", "test") for number in range(9)])
    write_params(workspace, {"start_models": {"mine": {"name": "raw/models/mine"}}, "pretrain": {"encoder": {}}})
    (workspace / "models/start/gone").mkdir(parents=True)
    baselines.main()
    assert loaded == [Path("models/start/encoder"), Path("models/start/mine")]
    names = ["BM25", "encoder, before training", "mine, before training"]
    assert list(json.loads(Path("results/baselines.json").read_text())["held_out"]) == names
    scores = read_query_scores(Path("data/scores/baselines.parquet"), made_by="baselines")
    assert [system for _, system in scores] == names


def test_few_held_out_documents_are_told_of(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    split = [("train", 200), ("test", 101)]
    rows = [(f"q{kind}{number}", f"d{kind}{number}", kind) for kind, count in split for number in range(count)]
    for left_out, searched in (1, "only 100 held-out documents"), (0, ""):
        write_rows("shop", rows[: len(rows) - left_out])
        write_params(workspace, {**PARAMS, "evaluate": {}})
        baselines.main()
        warning = capfd.readouterr().err
        assert searched in warning and bool(warning) == bool(searched)
    write_rows("shop", rows[:-1])
    for held_out in {"training_documents": True}, {"documents": 100}:
        write_params(workspace, {**PARAMS, "evaluate": {"held_out": held_out}})
        baselines.main()
        assert not capfd.readouterr().err
