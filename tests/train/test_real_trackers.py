"""The trackers themselves, where they are installed (pip install wandb mlflow-skinny), without a network."""

from pathlib import Path

import pytest

from batchwright.core.files import read_tsv
from tests.train.test_live import inputs, job, scratch
from trainers.variants import train

__all__ = ["inputs", "scratch"]


def test_mlflow_keeps_every_row_under_the_run_s_name(
    tmp_path: Path, inputs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("BATCHWRIGHT_TRACKER", "mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    watched = job(tmp_path, inputs)
    train(watched)
    client = mlflow.MlflowClient((tmp_path / "runs").as_uri())
    (experiment,) = client.search_experiments(filter_string="name = 'batchwright'")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == f"biencoder-{watched.scratch.name[:8]}"
    assert run.info.status == "FINISHED"
    assert run.data.params["temperature"] == "0.1"
    for measure, curve, column in (("loss", watched.curve, "loss"), ("dev/ndcg_at_10", watched.dev_curve, "ndcg@10")):
        kept = {point.step: point.value for point in client.get_metric_history(run.info.run_id, measure)}
        rows = {int(row["step"]): float(row[column]) for row in read_tsv(curve, made_by="train")}
        assert kept == pytest.approx(rows, rel=1e-5)


def test_wandb_keeps_every_row_when_it_is_offline(
    tmp_path: Path, inputs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("BATCHWRIGHT_TRACKER", "wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    watched = job(tmp_path, inputs)
    train(watched)
    (kept,) = (watched.scratch.parents[1] / "wandb").glob("offline-run-*/*.wandb")
    assert kept.stem == f"run-biencoder-{watched.scratch.name[:8]}"
    content = kept.read_bytes()
    for row in read_tsv(watched.curve, made_by="train"):
        assert row["loss"][:5].encode() in content
    assert b"temperature" in content and b"dev/ndcg_at_10" in content
