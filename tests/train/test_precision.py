"""Training in bfloat16: what the model computes is rounded, what is kept is not."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from batchwright.core.files import read_tsv
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.common import run
from trainers.common.job import TrainJob
from trainers.common.passes import float32_products, send
from trainers.variants import build_learner, train

VARIANTS = ["biencoder", "cde", "seed_encoder", "xtr"]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def job_in(folder: Path, variant: str, precision: str) -> TrainJob:
    if not (folder / "shards").exists():
        write_toy_model(folder / "start")
        write_toy_shards(folder / "shards", [toy_batch(toy_rows(12, seed)) for seed in range(30)])
    own = {"cde": {"context_documents": 4}, "xtr": {"score": "colbert"}}.get(variant, {})
    options = {"precision": precision, "mini_batch_size": 5, "learning_rate": 1e-2, **own}
    return toy_job(folder / precision, folder / "start", folder / "shards", variant, **options)


def gradient(job: TrainJob) -> Tensor:
    learner = build_learner(job)
    learner.model.train()
    outcome = learner.backward(
        learner.prepare(BatchReader(ShardSet.open(job.shards), job.info.prefixes, 0).read(1, slice(None)))
    )
    assert outcome.loss.dtype == torch.float32
    found = [each.grad for each in learner.model.parameters() if each.grad is not None]
    assert {each.dtype for each in found} == {torch.float32}
    return torch.cat([each.flatten() for each in found])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gradient_in_bfloat16_is_that_in_float32_but_for_rounding(tmp_path: Path, variant: str) -> None:
    exact, same, rounded = (
        gradient(job_in(tmp_path, variant, precision)) for precision in ("float32", "tfloat32", "bfloat16")
    )
    assert torch.equal(exact, same)  # only GPUs round
    assert 1e-4 < (rounded - exact).norm() / exact.norm() < 0.1


def test_training_in_bfloat16_learns_and_saves_float32(tmp_path: Path) -> None:
    jobs = [job_in(tmp_path, "biencoder", precision) for precision in ("float32", "bfloat16")]
    curves = []
    for job in jobs:
        train(job)
        curves.append(torch.tensor([float(row["loss"]) for row in read_tsv(job.curve, made_by="train")]))
    assert (curves[0] - curves[1]).abs().max() < 0.1
    assert curves[1][-5:].mean() < curves[1][:5].mean() - 0.2
    weights = load_file(jobs[1].model / "model.safetensors")
    assert {each.dtype for each in weights.values()} == {torch.float32}


@pytest.mark.parametrize("kernels", [True, False])
def test_bfloat16_without_kernels_is_warned_of(
    tmp_path: Path, kernels: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "computes_bfloat16", lambda device: kernels)
    train(replace(job_in(tmp_path, "biencoder", "bfloat16"), every=15))
    said = "warning: train biencoder: this processor has no kernels for bfloat16, which takes many times as long"
    assert (said in capsys.readouterr().err) is not kernels


def test_products_are_rounded_inside_the_block_only() -> None:
    before = torch.get_float32_matmul_precision()
    with float32_products(tf32=True):
        assert torch.get_float32_matmul_precision() == "high"
        with float32_products(tf32=False):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(("on", "pinned"), [("cpu", 1), ("cuda", 0)])
def test_only_what_is_not_on_the_gpu_yet_is_pinned(on: str, pinned: int) -> None:
    """Torch refuses to pin a GPU's tensor, such as CDE's context."""
    tensor = Mock(device=torch.device(on))
    send(tensor, torch.device("cuda"))
    assert tensor.pin_memory.call_count == pinned
