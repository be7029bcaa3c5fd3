"""Training with two processes against training with one."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch import distributed as dist
from torch.distributed.tensor import DTensor

from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from tests.train.ranks import WORLD, run_ranks
from tests.train.test_curves import DEV
from tests.train.test_training import content, die_at_the_sixth_step
from tests.train.toys import WORDS, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_qwen3, write_toy_shards
from trainers.common.distributed import gather_rows, in_turn, own_rows, sum_gradients
from trainers.common.job import TrainJob
from trainers.common.run import Learner
from trainers.common.shares import clip_gradients, whole
from trainers.common.step_loop import set_trained, trained_state
from trainers.variants import build_learner, train

DIRECTIONS = ["query_to_document", "document_to_query", "query_to_query", "document_to_document"]
LARGE: dict[str, object] = {"lora": {"rank": 2}, "checkpointing": True, "fsdp": True}


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("biencoder", {}),
        (
            "biencoder",
            {"directions": DIRECTIONS, "hardness_strength": 5, "dimensions": {4: 0.5, 16: 1}},
        ),
        ("biencoder", {"distill": {"loss": "kl"}, "dimensions": {4: 0.5, 16: 1}}),
        ("biencoder", {"distill": {"loss": "margin_mse", "weight": None, "temperature": 0.1}, **LARGE}),
        ("seed_encoder", {"loss": "hinge", "learning_rate": 1e-5}),  # tiny gradients, whose rounding AdamW enlarges
        ("cde", {"context_documents": 4, "context_dropout": 0, "new_learning_rate": 1e-1}),
        ("cde", {"context_documents": 4, "distill": {"weight": None}, "new_learning_rate": 1e-1}),
        ("cde", {"context_documents": 9, "context_dropout": 0.5, "new_learning_rate": 1e-1}),
        ("cde", {"context_documents": 4, "first_stage": "shared", "context_dropout": 0, "new_learning_rate": 1e-1}),
        ("cde", {"context": "sequence", "context_documents": 9, "context_dropout": 0.5, "null_share": 0.3}),
        ("xtr", {"k": 9, "learning_rate": 1e-7}),  # retrieval is discontinuous, so steps must be tiny
        ("xtr", {"score": "colbert"}),
        ("xtr", {"score": "colbert", "distill": {"loss": "margin_mse"}, **LARGE}),
    ],
)
def test_two_processes_give_the_gradient_and_the_weights_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, options: dict[str, object]
) -> None:
    """With groups of another size."""
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    start = (write_toy_qwen3 if "lora" in options else write_toy_model)(tmp_path / "start")
    taught = "distill" in options
    batches = [toy_batch(ragged_rows(seed, taught=taught), np.eye(7, k=1, dtype=bool)) for seed in range(4)]
    shards = write_toy_shards(tmp_path / "shards", batches)
    jobs = [
        toy_job(tmp_path / name, start, shards, variant, hard_negatives=2, mini_batch_size=most, **options)
        for name, most in (("one", 32), ("two", 2))
    ]

    _work(-1, tmp_path, jobs[0])
    run_ranks(_work, tmp_path, jobs[1])

    one, first, second = (
        torch.load(tmp_path / f"{name}{rank}.pt") for name, rank in (("one", -1), ("two", 0), ("two", 1))
    )
    assert torch.equal(first, second)
    assert torch.cosine_similarity(one, first, dim=0) > 0.99999
    assert abs(one.norm() / first.norm() - 1) < 1e-4
    assert _curve(jobs[0]) == pytest.approx(_curve(jobs[1]), rel=1e-3)
    assert _weights(jobs[0]).allclose(_weights(jobs[1]), atol=1e-4)


@pytest.mark.parametrize("start", [write_toy_qwen3, pytest.param(write_toy_model, marks=pytest.mark.slow)])
def test_shared_weights_learn_what_whole_ones_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[Path], Path]
) -> None:
    """With matrices, gradients and the optimiser's states in parts; rounded layers but for rounding."""
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    batches = [toy_batch(ragged_rows(seed), np.eye(7, k=1, dtype=bool)) for seed in range(4)]
    places = start(tmp_path / "start"), write_toy_shards(tmp_path / "shards", batches)

    def job(name: str, **options: object) -> TrainJob:
        options = {"hard_negatives": 2, "mini_batch_size": 4, "steps": 2, "evaluate_every": 2, **options}
        return toy_job(tmp_path / name, *places, dev=DEV, **options)

    one, two, shared = job("one", mini_batch_size=32), job("two"), job("shared", fsdp=True)
    rounded = [
        job(name, fsdp=name == "parts", precision="bfloat16", evaluate_every=None) for name in ("rounded", "parts")
    ]
    _work(-1, tmp_path, one)
    run_ranks(_work, tmp_path, two, shared, *rounded)

    expected, *others = (torch.load(tmp_path / f"{name}.pt") for name in ("one-1", "two0", "shared0", "shared1"))
    for found in others:
        assert (found - expected).norm() < 1e-5 * expected.norm()
    for each in (two, shared):
        assert _curve(each) == pytest.approx(_curve(one), abs=2e-5)
        assert _weights(each).allclose(_weights(one), atol=1e-5)
        assert each.dev_curve.read_bytes() == one.dev_curve.read_bytes()
    expected, found = (torch.load(tmp_path / f"{each.model.parent.name}0.pt") for each in rounded)
    assert (found - expected).norm() < 1e-3 * expected.norm()
    assert _weights(rounded[1]).dtype == torch.float32


@pytest.mark.slow
def test_a_training_with_shared_weights_goes_on_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many workers to the same bytes, and with another number of them to the same weights."""
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(6, seed)) for seed in range(8)])
    start = write_toy_qwen3(tmp_path / "start")
    options: dict[str, object] = {"fsdp": True, "learning_rate": 1e-2}
    undisturbed, again, alone = (
        toy_job(tmp_path / name, start, shards, dev=dev, **options)
        for name, dev in (("undisturbed", None), ("again", DEV), ("alone", DEV))
    )
    run_ranks(_interrupted, tmp_path, undisturbed, again)
    assert content(again.model) == content(undisturbed.model)

    shutil.copytree(tmp_path / "kept", alone.storage.path, dirs_exist_ok=True)
    calls = die_at_the_sixth_step(monkeypatch)
    calls += [1] * 6
    train(alone)
    assert len(calls) == 6 + 3, "it went on after the fifth of eight steps"
    assert _weights(alone).allclose(_weights(undisturbed), atol=1e-5)


def _interrupted(rank: int, folder: Path, undisturbed: TrainJob, again: TrainJob) -> None:
    """Train twice, the second time interrupted; keep the checkpoints of then."""
    _join(rank, folder)
    train(undisturbed)
    with pytest.MonkeyPatch.context() as patch:
        calls = die_at_the_sixth_step(patch)
        with pytest.raises(KeyboardInterrupt):
            train(again)
        if rank == 0:
            shutil.copytree(again.storage.path, folder / "kept")
        dist.barrier()
        train(again)
        assert len(calls) == 9, "it went on after the fifth of eight steps"
    dist.destroy_process_group()


def ragged_rows(seed: int, *, taught: bool = False) -> list[dict[str, object]]:
    """Rows with texts of all lengths and any number of negatives, so that no two ranks pad alike."""
    generator = np.random.default_rng(seed)
    rows = toy_rows(7, seed)
    for number, row in enumerate(rows):
        row["query"] = f"{row['query']} {' '.join(WORDS[: number % 5])}".strip()
        row["document"] = f"{row['document']} {' '.join(WORDS[: 2 * number])}".strip()
        row["negatives"] = [f"{WORDS[-1]} {' '.join(WORDS[: number + seed])}"] * (count := (number + seed) % 3)
        if taught:
            row["scores"] = generator.normal(size=1 + count).tolist() if number != 3 else []
    return rows


def _work(rank: int, folder: Path, *jobs: TrainJob) -> None:
    torch.set_num_threads(1)
    if rank >= 0:
        _join(rank, folder)
        _check_collectives(folder)
    for job in jobs:
        torch.save(_first_gradient(job), folder / f"{job.model.parent.name}{rank}.pt")
        train(job)
    if rank >= 0:
        dist.destroy_process_group()


def _join(rank: int, folder: Path) -> None:
    store = dist.FileStore(str(folder / "store"), WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)


def _check_collectives(folder: Path) -> None:
    with in_turn():
        (folder / "turn").mkdir()  # fails if it is there
        time.sleep(0.02)
        (folder / "turn").rmdir()
    for total in (2, 5, 6):
        for shape in ((total,), (total, 3), (total, 2, 3), (total, 0, 3)):
            whole = torch.arange(torch.Size(shape).numel()).float().view(shape)
            assert torch.equal(gather_rows(whole[own_rows()], total), whole)
    shared, single, unused = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    shared.grad = torch.ones(2)
    if dist.get_rank() == 1:
        single.grad = torch.full((2,), 5.0)
    sum_gradients([shared, single, unused])
    assert shared.grad.tolist() == [2, 2]
    assert single.grad is not None and single.grad.tolist() == [5, 5]
    assert unused.grad is None


def _first_gradient(job: TrainJob) -> Tensor:
    learner = build_learner(job)
    learner.model.train()
    adapts = job.common.lora is not None
    matrices = [each for each in learner.model.parameters() if each.ndim > 1 and not (adapts and each.requires_grad)]
    parts = [each for each in learner.model.parameters() if isinstance(each, DTensor)]
    assert len(parts) == (len(matrices) if job.common.fsdp and dist.is_initialized() else 0)
    set_trained(learner.model, trained_state(learner.model))
    assert all(each.to_local().numel() <= -(-len(each) // WORLD) * each[0].numel() for each in parts)
    taught = job.common.distill is not None
    reader = BatchReader(ShardSet.open(job.shards), job.info.prefixes, job.common.hard_negatives, taught=taught)
    learner.backward(learner.prepare(reader.read(2, own_rows())))
    sum_gradients(learner.model.parameters())
    gradient = _gradient(learner)
    half = gradient.norm().item() / 2
    norm = clip_gradients(learner.model.parameters(), half)
    assert norm.item() == pytest.approx(2 * half, rel=1e-5)
    assert _gradient(learner).allclose(gradient * half / (norm + 1e-6), rtol=1e-4, atol=0)
    return gradient


def _gradient(learner: Learner) -> Tensor:
    return torch.cat([whole(each.grad).flatten() for each in learner.model.parameters() if each.grad is not None])


def _curve(job: TrainJob) -> list[float]:
    return [float(line.split("\t")[2]) for line in job.curve.read_text().splitlines()[1:]]


def _weights(job: TrainJob) -> Tensor:
    files = sorted(job.model.rglob("*.safetensors"))
    return torch.cat([each.flatten() for file in files for each in load_file(file).values()])
