"""The stage's command."""

import sys
from pathlib import Path

import pytest
import yaml

from formats.errors import InputError
from formats.results import read_json
from stages.entry import run
from stages.train.__main__ import main
from stages.train.summary import summarise
from tests.train.toys import toy_batch, toy_rows, write_toy_model, write_toy_shards

STEPS = 4


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BATCHWRIGHT_TRAIN_WORKERS", raising=False)
    monkeypatch.delenv("BATCHWRIGHT_SCRATCH", raising=False)
    write_toy_model(tmp_path / "start")
    for policy in ("contextual", "random"):
        batches = [toy_batch(toy_rows(6, seed)) for seed in range(STEPS)]
        write_toy_shards(tmp_path / "data" / "shards" / policy, batches)
    common = {"epochs": 1, "chunk": 4, "learning_rate": 1e-3, "warm_up": 0.1, "weight_decay": 0.01, "clip": 1.0}
    own = {"model": "start", "max_length": 16, "temperature": 0.05}
    write_params(tmp_path, {"base": {"seed": 3}, "train": {"common": common, "biencoder": own}})
    return tmp_path


def write_params(folder: Path, values: dict[str, object]) -> None:
    (folder / "params.yaml").write_text(yaml.safe_dump(values))


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["train", *arguments])
    return main()


def test_the_stage_writes_model_curve_and_metrics(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = call(monkeypatch, "biencoder")
    assert summary.startswith("biencoder: 4 steps, 24 pairs, loss ")
    assert (project / "models" / "biencoder" / "model.safetensors").exists()
    assert (project / "results" / "train" / "biencoder.tsv").exists()
    metrics = read_json(project / "results" / "train" / "biencoder.json", made_by="train")
    assert list(metrics) == ["accuracy", "first_loss", "last_loss", "pairs", "steps"]
    assert not list((project / ".scratch").rglob("*.pt"))


def test_random_batches_give_a_model_of_their_own(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call(monkeypatch, "biencoder", "--batches", "random")
    assert (project / "models" / "biencoder-random").is_dir()
    assert not (project / "models" / "biencoder").exists()
    assert (project / "results" / "train" / "biencoder-random.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0}, "parameter 'train.biencoder.temperature': Input should be greater than 0"),
        ({"temprature": 1}, "unknown parameter 'train.biencoder.temprature'; did you mean 'temperature'?"),
        ({"model": "./nowhere"}, "model './nowhere': no such folder"),
    ],
)
def test_bad_parameters_are_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], message: str
) -> None:
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["train"]["biencoder"] |= change
    write_params(project, values)
    with pytest.raises(InputError) as error:
        call(monkeypatch, "biencoder")
    assert message in str(error.value)
    assert not (project / "models").exists()


def test_an_unknown_variant_and_missing_shards_end_with_one_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="unknown variant 'biencodr'; did you mean 'biencoder'"):
        call(monkeypatch, "biencodr")
    (project / "data" / "shards" / "contextual" / "train-00001-of-00002.arrow").unlink()
    with pytest.raises(SystemExit) as exit:
        run("train", lambda: call(monkeypatch, "biencoder"))
    assert exit.value.code == 1
    assert capsys.readouterr().err.endswith("missing; run the stage 'pack' again\n")


def test_the_summary_averages_the_first_and_last_steps() -> None:
    curve = [{"loss": str(20 - step), "accuracy": str(step / 20)} for step in range(20)]
    summary = summarise(curve, batch_size=8)
    assert summary == {"steps": 20, "pairs": 160, "first_loss": 15.5, "last_loss": 5.5, "accuracy": 0.725}
