"""The stage ``tune`` on toys: its trials, what a run takes from it, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv
from batchwright.formats.shards import Manifest
from batchwright.training.losses import static_temperature
from stages.train import main as train
from stages.tune.search import MOST
from stages.tune.stage import main
from tests.helpers import tree, write_rows
from tests.train.toys import COMMON, toy_batch, toy_rows, write_toy_model, write_toy_shards, write_toy_static

STEPS = 30
RUN = {"variant": "biencoder", "batches": "best", "start": "models/start/static"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a static model to be tuned, with toy shards of both policies and dev queries."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / ".scratch"))
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.delenv("BATCHWRIGHT_TRAIN_WORKERS", raising=False)
    monkeypatch.setattr("stages.tune.stage.FEWEST_STEPS", 1)
    write_toy_model(tmp_path / "toy")
    for number, policy in enumerate(("contextual", "random")):
        batches = [toy_batch(toy_rows(6, 100 * number + step)) for step in range(STEPS)]
        write_toy_shards(tmp_path / "data/shards" / policy, batches)
    write_toy_static(tmp_path / "toy", Path(RUN["start"]), seed=0)
    write_rows("toys", [(str(row["query"]), str(row["document"]), "dev") for row in toy_rows(30, 7)])
    write_project()
    return tmp_path


def write_project(share: float = 1.0, **run: Any) -> None:
    params = {"base": {"seed": 1}, "runs": {"static": RUN | run}, "tune": {"best": {"run": "static", "share": share}}}
    common = {**COMMON, "learning_rate": 1e-2}
    dev = {"evaluate": {"dev": {"queries": 20, "documents": 30}}}
    Path("params.yaml").write_text(yaml.safe_dump(params | dev | {"train": {"common": common, "biencoder": {}}}))


def test_a_run_is_trained_with_what_was_chosen_and_says_why(project: Path) -> None:
    said = main("best")
    choice = read_json(Path("data/shards/best/choice.json"), made_by="tune")
    assert read_json(Path("results/tune/best.json"), made_by="tune") == choice
    assert choice["reason"] in said and "on 20 dev queries" in said
    train("static")
    trained = read_json(Path("results/train/static.json"), made_by="train")["trained_with"]
    for setting in ("batches", "temperature", "learning_rate", "negatives_stand_for"):
        assert trained[setting] == choice[setting]
    assert f"Tuned: {choice['reason']}." in Path("models/static/README.md").read_text()


def test_trials_stay_within_their_share_of_the_training_and_leave_nothing_behind(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main("best")
    rows = read_tsv(Path("results/tune/best.tsv"), made_by="tune")
    assert f"train tune-best, trial {len(rows)} of at most {MOST}: 100%" in capsys.readouterr().err
    assert len(rows) <= MOST
    assert float(rows[-1]["cost"]) <= 1
    assert {row["batches"] for row in rows} == {"contextual", "random"}
    assert not any((project / ".scratch/tune").iterdir())


def test_the_search_keeps_the_temperature_that_follows_from_the_documents(project: Path) -> None:
    write_project(temperature="auto", negatives_stand_for="domain")
    main("best")
    documents = Manifest.read(Path("data/shards/contextual")).documents["toys"]
    tried = read_tsv(Path("results/tune/best.tsv"), made_by="tune")
    assert {float(row["temperature"]) for row in tried if row["negatives_stand_for"] == "domain"} == {
        static_temperature([documents])
    }
    train("static")
    trained = read_json(Path("results/train/static.json"), made_by="train")["trained_with"]
    assert trained["temperature"] == read_json(Path("results/tune/best.json"), made_by="tune")["temperature"]


def test_a_killed_search_goes_on_with_the_trial_that_it_was_at(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main("best")
    whole = tree(Path("results/tune"))
    done: list[Path] = []

    def killed(job: Any) -> None:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(job.scratch)
        train_trial(job)

    from trainers.launch import trials

    train_trial = trials.train
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trials, "train", killed)
        main("best")
    again: list[Path] = []
    monkeypatch.setattr(trials, "train", lambda job: (again.append(job.scratch), train_trial(job)))
    main("best")
    assert tree(Path("results/tune")) == whole
    assert again and not set(again) & set(done)


@pytest.mark.slow
def test_a_cluster_chooses_as_this_process_does(project: Path, monkeypatch: pytest.MonkeyPatch, cluster: None) -> None:
    main("best")
    here = tree(Path("results/tune"))
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "2")
    main("best")
    assert tree(Path("results/tune")) == here


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"start": "models/other"}, "tune.best: runs.static starts from models/other; .* models/start"),
        (
            {"share": 0.1},
            "0.1 of 1 trainings of 30 steps leaves 0 for each trial, fewer than 5; train longer, or leave",
        ),
        ({"in_batch": False}, "tune.best: runs.static has in_batch: false, directions or .* which tune tries; remove"),
    ],
)
def test_runs_that_cannot_be_tuned_are_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr("stages.tune.stage.FEWEST_STEPS", 5)
    write_project(**changes)
    with pytest.raises(InputError, match=said):
        main("best")
    assert not Path("data/shards/best").exists()


def test_the_share_that_is_advised_is_enough(project: Path) -> None:
    write_project(share=0.1)
    with pytest.raises(InputError, match=r"leaves 0 for each trial, fewer than 1; raise share to 0\.3, or leave out"):
        main("best")
    write_project(share=0.3)
    assert main("best").startswith("best: ")


def test_a_choice_that_is_none_is_refused(project: Path) -> None:
    Path("data/shards/best").mkdir()
    Path("data/shards/best/choice.json").write_text(json.dumps({"batches": "random"}))
    with pytest.raises(InputError, match=r"choice.json: not a choice .* run the stage 'tune' again"):
        train("static")
