"""How many texts go through a model at once, found by running out of memory; the memory is a pretended one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
from trainers.common import sentence_learner
from trainers.common.distributed import own_rows, rank, sum_gradients
from trainers.common.gradient_cache import Passes
from trainers.common.job import TrainJob
from trainers.common.passes import Chunk
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
def small_memory(forward: int, backward: int) -> Iterator[Chunk]:
    """Begin with all texts; a layer's outputs fit if they are at most so many, and their gradients likewise."""
    chunk = Chunk.whole()

    def too_small(rows: int, room: int) -> None:
        if rows > room:
            raise torch.OutOfMemoryError("CUDA out of memory")

    def watch(module: nn.Module, _: object, output: Tensor) -> None:
        if type(module).__name__ == "BertIntermediate":  # of both layers: the second one has its gradients by then
            too_small(len(output), forward)
            if output.requires_grad:
                output.register_hook(lambda gradient: too_small(len(gradient), backward))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chunk, "of", lambda *_: chunk)
        handle = nn.modules.module.register_module_forward_hook(watch)
        yield chunk
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


@pytest.mark.parametrize(("forward", "backward", "found"), [(12, 12, None), (12, 5, 3), (5, 12, 3), (5, 2, 1)])
@pytest.mark.parametrize("variant", OPTIONS)
def test_half_as_many_until_they_fit_give_the_same_gradient(
    tmp_path: Path, variant: str, forward: int, backward: int, found: int | None
) -> None:
    expected = gradient(job_in(tmp_path, variant, 12))
    with small_memory(forward, backward) as chunk:
        assert_close(gradient(job_in(tmp_path, variant, 12)), expected)
    assert chunk.size == (found or Chunk.whole().size)


def test_no_step_is_taken_twice_and_what_was_found_stays(tmp_path: Path) -> None:
    jobs = [job_in(tmp_path, "biencoder", most) for most in (3, "auto")]
    train(jobs[0])
    with small_memory(5, 5) as chunk:
        train(jobs[1])
    assert chunk.size == 3
    weights = [load_file(job.model / "model.safetensors") for job in jobs]
    assert all(each.allclose(weights[1][name], atol=1e-5) for name, each in weights[0].items())


def test_a_loss_that_does_not_fit_beside_the_passes_frees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = gradient(job_in(tmp_path, "biencoder", 12))
    compare, calls = sentence_learner.compare, []

    def fail_at_first(*given: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compare(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sentence_learner, "compare", fail_at_first)
    with small_memory(12, 12) as chunk:
        assert_close(gradient(job_in(tmp_path, "biencoder", 12)), expected)
    assert chunk.size == 6
    calls.clear()
    with pytest.raises(torch.OutOfMemoryError):  # a fixed size stays as it is
        gradient(job_in(tmp_path, "biencoder", 12))


def test_a_fixed_size_is_not_halved_and_one_text_cannot_be() -> None:
    def fail() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(InputError, match="too small for 6 texts at a time; lower mini_batch_size"):
        Chunk(8).fit(fail, 6)
    with pytest.raises(InputError, match="one text at a time"):
        Chunk.whole().fit(fail, 8)


@pytest.mark.parametrize(("max_length", "size"), [(16, 256), (32, 128), (3, 1365)])
def test_on_a_cpu_the_number_of_tokens_decides(tmp_path: Path, max_length: int, size: int) -> None:
    known = job_in(tmp_path, "biencoder", "auto")
    job = toy_job(tmp_path / "job", known.start_model, known.shards, mini_batch_size="auto", max_length=max_length)
    assert Passes(job).most == size


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
