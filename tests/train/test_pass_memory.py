"""How much goes through a model at once and keeps its graph, by a memory that is a pretended one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch import distributed as dist

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from tests.train.ranks import WORLD, run_ranks
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.common import memory as pass_memory
from trainers.common import sentence_learner
from trainers.common.distributed import own_rows, rank, sum_gradients
from trainers.common.gradient_cache import Passes
from trainers.common.job import TrainJob
from trainers.common.memory import GPU_TOKENS, Memory
from trainers.common.texts import Cut, Group
from trainers.variants import build_learner, train

OPTIONS: dict[str, dict[str, object]] = {
    "biencoder": {},
    "cde": {"context_documents": 7, "context_dropout": 0},
    "seed_encoder": {},
    "xtr": {"score": "colbert"},
}


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def job_in(folder: Path, variant: str, most: int | str) -> TrainJob:
    if not (folder / "shards").exists():
        write_toy_model(folder / "start")
        write_toy_shards(folder / "shards", [toy_batch(toy_rows(12, seed)) for seed in range(6)])
    options = {"mini_batch_size": most, **OPTIONS[variant]}
    return toy_job(folder / str(most), folder / "start", folder / "shards", variant, **options)


@contextmanager
def small_memory(forward: int, backward: int) -> Iterator[Memory]:
    """Begin with all texts; a layer's outputs fit if they are at most so many, and their gradients likewise."""
    memory = Memory(GPU_TOKENS, adapts=True)

    def too_small(rows: int, room: int) -> None:
        if rows > room:
            raise torch.OutOfMemoryError("CUDA out of memory")

    def watch(module: nn.Module, _: object, output: Tensor) -> None:
        if type(module).__name__ == "BertIntermediate":  # of both layers: the second one has its gradients by then
            too_small(len(output), forward)
            if output.requires_grad:
                output.register_hook(lambda gradient: too_small(len(gradient), backward))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "of", lambda *_: memory)
        handle = nn.modules.module.register_module_forward_hook(watch)
        yield memory
        handle.remove()


def gradient(job: TrainJob) -> Tensor:
    learner = build_learner(job)
    learner.model.train()
    learner.backward(learner.prepare(BatchReader(ShardSet.open(job.shards), job.info.prefixes, 0).read(1, own_rows())))
    sum_gradients(learner.model.parameters())
    return torch.cat([each.grad.flatten() for each in learner.model.parameters() if each.grad is not None])


def assert_close(found: Tensor, expected: Tensor) -> None:
    assert torch.cosine_similarity(found, expected, dim=0) > 0.99999
    assert abs(found.norm() / expected.norm() - 1) < 1e-4


@pytest.mark.parametrize(("forward", "backward"), [(12, 12), (12, 5), (5, 12), (5, 2)])
@pytest.mark.parametrize("variant", OPTIONS)
def test_half_as_many_until_they_fit_give_the_same_gradient(
    tmp_path: Path, variant: str, forward: int, backward: int
) -> None:
    expected = gradient(job_in(tmp_path, variant, 12))
    with small_memory(forward, backward) as memory:
        assert_close(gradient(job_in(tmp_path, variant, 12)), expected)
    assert (memory.tokens == GPU_TOKENS) == (forward == backward == 12)


def test_no_step_is_taken_twice_and_what_was_found_stays(tmp_path: Path) -> None:
    jobs = [job_in(tmp_path, "biencoder", most) for most in (3, "auto")]
    train(jobs[0])
    with small_memory(5, 5) as memory:
        train(jobs[1])
    assert memory.tokens < 12 * 16
    weights = [load_file(job.model / "model.safetensors") for job in jobs]
    assert all(each.allclose(weights[1][name], atol=1e-5) for name, each in weights[0].items())


@pytest.mark.parametrize("variant", OPTIONS)
@pytest.mark.parametrize("room", [0, 10_000])
def test_graphs_are_kept_as_far_as_memory_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, room: int
) -> None:
    """A token takes one byte; in the second batch, passes run once if they are kept, else twice."""
    job = job_in(tmp_path, variant, 3)
    expected = gradient(job)
    memory = Memory(30, adapts=True)
    taken: list[int] = []
    monkeypatch.setattr(Memory, "of", lambda *_: memory)
    monkeypatch.setattr(pass_memory, "_allocated", lambda: sum(taken))
    monkeypatch.setattr(pass_memory, "free_memory", lambda: room - sum(taken))
    runs: list[int] = []

    def watch(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if type(module).__name__ == "BertEmbeddings":
            runs.append(1)
            taken.append(output.shape[:2].numel() if torch.is_grad_enabled() else 0)

    learner = build_learner(job)
    learner.model.train()
    batch = BatchReader(ShardSet.open(job.shards), job.info.prefixes, 0).read(1, own_rows())
    passes = []
    for _ in range(2):
        learner.model.zero_grad()
        prepared = learner.prepare(batch)
        handle = nn.modules.module.register_module_forward_hook(watch)
        learner.backward(prepared)
        handle.remove()
        passes.append(len(runs))
        runs.clear()
        taken.clear()
    found = [each.grad.flatten() for each in learner.model.parameters() if each.grad is not None]
    assert_close(torch.cat(found), expected)
    if room == 0:
        assert passes[1] > passes[0]  # in the first batch, one pass is kept to be measured
    if room == 10_000:
        assert 2 * passes[1] - passes[0] in (0, 1, 2), "all but what is prepared from the context once"


def test_a_loss_that_does_not_fit_beside_the_passes_frees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = gradient(job_in(tmp_path, "biencoder", 12))
    compare, calls = sentence_learner.compare, []

    def fail_at_first(*given: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compare(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sentence_learner, "compare", fail_at_first)
    with small_memory(12, 12):
        assert_close(gradient(job_in(tmp_path, "biencoder", 12)), expected)
    assert len(calls) == 2
    calls.clear()
    with pytest.raises(torch.OutOfMemoryError):  # a fixed size stays as it is
        gradient(job_in(tmp_path, "biencoder", 12))


def test_a_fixed_size_is_not_halved_and_one_text_cannot_be() -> None:
    def fail(_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    texts = {"input_ids": torch.ones(2, 4, dtype=torch.int64), "attention_mask": torch.ones(2, 4, dtype=torch.int64)}
    group = Group(texts, np.arange(2), np.arange(2), Cut(tokens=8), np.array([4, 4]))
    with pytest.raises(InputError, match="too small for mini_batch_size texts at a time; lower it"):
        Memory(8).through(group, fail)
    with pytest.raises(InputError, match="one text at a time"):
        Memory(8, adapts=True).through(group, fail)


@pytest.mark.parametrize(("size", "tokens"), [("auto", 4096), (3, 48)])
def test_a_number_of_tokens_goes_through_at_once(tmp_path: Path, size: int | str, tokens: int) -> None:
    job = job_in(tmp_path, "biencoder", size)
    assert Passes(job, nn.Identity()).cut.tokens == tokens


def test_a_rank_with_too_little_memory_does_not_disturb_the_others(tmp_path: Path) -> None:
    """CDE's ranks exchange gradients between their passes."""
    job = job_in(tmp_path, "cde", 12)
    expected = gradient(job)
    run_ranks(_work, job, tmp_path)
    for number in range(WORLD):
        assert_close(torch.load(tmp_path / f"{number}.pt"), expected)


def _work(number: int, job: TrainJob, folder: Path) -> None:
    dist.init_process_group("gloo", store=dist.FileStore(str(folder / "store"), WORLD), rank=number, world_size=WORLD)
    with small_memory(*((6, 6) if rank() == 0 else (5, 2))):
        torch.save(gradient(job), folder / f"{number}.pt")
    dist.destroy_process_group()
