"""Training with two processes against training with one."""

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
from tests.train.toys import WORDS, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_qwen3, write_toy_shards
from trainers.common.distributed import gather_rows, own_rows, sum_gradients
from trainers.common.job import TrainJob
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

    _work(-1, jobs[0], tmp_path)
    run_ranks(_work, jobs[1], tmp_path)

    one, first, second = (torch.load(tmp_path / f"gradient{rank}.pt") for rank in (-1, 0, 1))
    assert torch.equal(first, second)
    assert torch.cosine_similarity(one, first, dim=0) > 0.99999
    assert abs(one.norm() / first.norm() - 1) < 1e-4
    assert _curve(jobs[0]) == pytest.approx(_curve(jobs[1]), rel=1e-3)
    assert _weights(jobs[0]).allclose(_weights(jobs[1]), atol=1e-4)


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


def _work(rank: int, job: TrainJob, folder: Path) -> None:
    torch.set_num_threads(1)
    if rank >= 0:
        store = dist.FileStore(str(folder / "store"), WORLD)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
        _check_collectives()
    torch.save(_first_gradient(job), folder / f"gradient{rank}.pt")
    train(job)
    if rank >= 0:
        dist.destroy_process_group()


def _check_collectives() -> None:
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
    parts = [each for each in learner.model.parameters() if isinstance(each, DTensor)]
    assert bool(parts) == (job.common.fsdp and dist.is_initialized())
    set_trained(learner.model, trained_state(learner.model))
    assert all(each.to_local().numel() <= -(-len(each) // WORLD) * each[0].numel() for each in parts)
    taught = job.common.distill is not None
    reader = BatchReader(ShardSet.open(job.shards), job.info.prefixes, job.common.hard_negatives, taught=taught)
    learner.backward(learner.prepare(reader.read(2, own_rows())))
    sum_gradients(learner.model.parameters())
    return torch.cat([each.grad.flatten() for each in learner.model.parameters() if each.grad is not None])


def _curve(job: TrainJob) -> list[float]:
    return [float(line.split("\t")[2]) for line in job.curve.read_text().splitlines()[1:]]


def _weights(job: TrainJob) -> Tensor:
    files = sorted(job.model.rglob("*.safetensors"))
    return torch.cat([each.flatten() for file in files for each in load_file(file).values()])
