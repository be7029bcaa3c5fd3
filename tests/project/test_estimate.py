"""What ``add`` says about the time that training will take."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from batchwright.core.terminal import duration
from pipelines.ingest.normalise import Pair
from project.add import estimate as estimates
from project.add.estimate import estimate
from tests.helpers import REPO

PARAMS = yaml.safe_load((REPO / "project/template/params.yaml").read_text())
PAIRS = [Pair(query=f"question {n}", document=f"answer {n}", domain="faq", negatives=[]) for n in range(700)]


@pytest.fixture(autouse=True)
def model(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A start model in which 1,000 weights multiply each of a pair's 20 tokens, and a machine of 10^6 a second."""
    monkeypatch.setattr(estimates, "_work", lambda model, pairs: 6 * 1000 * 20.0 if model["name"] == "here" else None)
    monkeypatch.setattr(estimates, "_speed", lambda: 1e6 / estimates.USED)
    return workspace


def with_model(name: str) -> dict[str, Any]:
    return {**PARAMS, "start_models": {"minilm": {"name": name}}}


def test_steps_and_time_are_those_of_all_runs() -> None:
    told = estimate(with_model("here"), PAIRS, more=False)
    steps = 2 * 4 * (700 // 64)
    assert f"Training biencoder, biencoder-random will take about {round(steps * 64 * 0.12 / 60)} minutes" in told
    assert f"an estimate from 700 pairs, {steps} steps" in told


def test_pairs_of_earlier_sources_count_and_so_do_limits_of_steps() -> None:
    Path("results").mkdir()
    Path("results/ingest.json").write_text(
        json.dumps({"domains": {"a": {"train": 200}, "b": {"train": 100}}, "sources": {}})
    )
    params = with_model("here")
    params["runs"] = {"few": {"start": "models/start/minilm", "steps": 5, "seeds": 3}}
    told = estimate(params, PAIRS, more=True)
    assert "Training few will take at least about 2 minutes" in told
    assert "1,000 pairs, 15 steps" in told


def test_pairs_of_sources_that_are_not_ingested_yet_count() -> None:
    Path("results").mkdir()
    Path("results/ingest.json").write_text(json.dumps({"domains": {"a": {"train": 50}}, "sources": {"0 a.csv": {}}}))
    for name, count in (("a.csv", 100), ("b.csv", 100)):
        Path(name).write_text("query,document\n" + "".join(f"q {n},d {n}\n" for n in range(count)))
    params = with_model("here")
    sources = [{"kind": "csv", "path": f"{name}.csv", "domain": name} for name in ("a", "b", "gone", "new")]
    params["ingest"] = {"sources": sources}
    told = estimate(params, PAIRS, more=False)
    assert "at least about" in told and f"{50 + 100 + len(PAIRS)} pairs" in told


def test_what_takes_long_has_something_quicker_beside_it() -> None:
    params = with_model("here")
    assert "A static model trains in a minute" not in estimate(params, PAIRS[:64], more=False)
    told = estimate(params, PAIRS * 20, more=False).splitlines()
    assert told[-1].startswith("A static model trains in a minute"), "on a line of its own"


def test_nothing_is_said_of_models_that_are_not_here() -> None:
    assert estimate(with_model("elsewhere"), PAIRS, more=False) == ""
    assert estimate(with_model("here"), PAIRS[:63], more=False) == "", "which fill no batch"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3, "10 seconds"), (28, "30 seconds"), (50, "1 minute"), (5000, "83 minutes"), (7200, "2 hours"), (2e5, "2 days")],
)
def test_durations_are_rough(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_the_weights_and_tokens_of_a_real_model_are_counted(monkeypatch: pytest.MonkeyPatch, tiny_bert: Path) -> None:
    monkeypatch.undo()
    model = {"name": str(tiny_bert), "max_length": 4}
    weights = estimates._weights(tiny_bert / "model.safetensors")
    assert weights > 0
    assert estimates._work(model, PAIRS[:10]) == 6 * weights * 8
    assert estimates._work({**model, "static_width": 16}, PAIRS[:10]) == 6 * 16 * 8
