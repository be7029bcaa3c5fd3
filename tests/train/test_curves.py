"""Quality by step: measured as a user would measure it, without any effect on the training."""

from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from batchwright.core.files import read_tsv
from stages.scoring.collection import Collection, Text, score_queries
from stages.scoring.retrieval import model_system
from stages.train import DevScores
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.common import step_loop
from trainers.common.job import TrainJob
from trainers.common.sentence_learner import SentenceLearner
from trainers.variants import VARIANTS, train

STEPS = 7
ROWS = toy_rows(30, seed=99)
DEV = DevScores(
    Collection(
        name="dev",
        queries=[Text(id=f"q{number}", text=str(row["query"]), domain="toys") for number, row in enumerate(ROWS[:12])],
        documents=[Text(id=f"d{number}", text=str(row["document"]), domain="toys") for number, row in enumerate(ROWS)],
        relevant={f"q{number}": {f"d{number}": 1} for number in range(12)},
    )
)
MakeJob = Callable[..., TrainJob]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_model(tmp_path_factory.mktemp("start") / "toy")


@pytest.fixture
def job(tmp_path: Path, start: Path, monkeypatch: pytest.MonkeyPatch) -> MakeJob:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(8, seed)) for seed in range(STEPS)])

    def make(name: str, variant: str = "biencoder", **changes: object) -> TrainJob:
        own = {"context_documents": 3} if variant == "cde" else {}
        return toy_job(tmp_path / name, start, shards, variant, **own, **changes)

    return make


def weights(job: TrainJob) -> dict[str, bytes]:
    return {
        f"{file.relative_to(job.model)}/{name}": tensor.numpy().tobytes()
        for file in job.model.rglob("*.safetensors")
        for name, tensor in load_file(file).items()
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_watching_a_training_does_not_change_what_it_learns(job: MakeJob, variant: str) -> None:
    plain, watched = job("plain", variant), job("watched", variant, dev=DEV, evaluate_every=2)
    train(plain)
    train(watched)
    assert weights(plain) and weights(plain) == weights(watched)
    assert plain.curve.read_bytes() == watched.curve.read_bytes()
    assert read_tsv(plain.dev_curve, made_by="train") == []
    rows = read_tsv(watched.dev_curve, made_by="train")
    assert [row["step"] for row in rows] == ["0", "2", "4", "6", "7"]
    assert not [file for file in watched.scratch.rglob("*") if file.is_file()]


def test_the_last_row_is_the_score_of_the_trained_model_and_the_first_that_of_its_start(job: MakeJob) -> None:
    watched = job("watched", dev=DEV, evaluate_every=100, learning_rate=1e-2)
    train(watched)
    rows = read_tsv(watched.dev_curve, made_by="train")
    assert list(rows[0]) == ["step", "mrr@10", "ndcg@10", "recall@100"]
    for row, folder in zip(rows, (watched.start_model, watched.model), strict=True):
        scored = score_queries(DEV.collection, model_system(folder)(DEV.collection))
        expected = sum(measures["ndcg@10"] for measures in scored.values()) / len(scored)
        assert float(row["ndcg@10"]) == pytest.approx(expected, rel=1e-5)
    assert rows[0] != rows[1]


def test_a_killed_run_keeps_its_curve_and_measures_only_the_step_it_was_killed_in_again(
    job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_loop, "SAVE_EVERY_SECONDS", 0.0)
    whole, killed = job("whole", dev=DEV, evaluate_every=1), job("killed", dev=DEV, evaluate_every=1)
    train(whole)

    backward, measure = SentenceLearner.backward, DevScores.__call__
    calls: list[str] = []

    def die_at_the_fifth(learner: SentenceLearner, batch: object) -> object:
        calls.append("step")
        if calls.count("step") == 5:
            raise KeyboardInterrupt
        return backward(learner, batch)  # type: ignore[arg-type]

    def count(scores: DevScores, folder: Path) -> dict[str, float]:
        calls.append("measured")
        return measure(scores, folder)

    monkeypatch.setattr(SentenceLearner, "backward", die_at_the_fifth)
    monkeypatch.setattr(DevScores, "__call__", count)
    with pytest.raises(KeyboardInterrupt):
        train(killed)
    train(killed)
    assert calls.count("measured") == STEPS + 2
    assert killed.dev_curve.read_bytes() == whole.dev_curve.read_bytes()
    assert weights(killed) == weights(whole)


def test_a_run_watched_on_other_queries_does_not_resume(job: MakeJob) -> None:
    assert job("one", dev=DEV).scratch != job("one").scratch
