"""Dropout is torch's own, at the rate that the parameters say, and the same in both passes of a gradient cache."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from tests.cde.encoders import KINDS, backbone
from tests.train.test_distributed import ragged_rows
from tests.train.toys import toy_batch, toy_job, write_toy_model, write_toy_shards
from trainers.common.job import TrainJob
from trainers.common.memory import Memory
from trainers.common.passes import drawing, set_dropout
from trainers.variants import build_learner

CPU = torch.device("cpu")
OPTIONS: dict[str, tuple[str, dict[str, object]]] = {
    "biencoder": ("biencoder", {}),
    "seed_encoder": ("seed_encoder", {}),
    "cde": ("cde", {"context_documents": 5, "context_dropout": 0}),
    "cde, shared": ("cde", {"context_documents": 5, "context_dropout": 0, "first_stage": "shared"}),
    "cde, sequence": ("cde", {"context_documents": 5, "context_dropout": 0, "context": "sequence"}),
    "xtr": ("xtr", {"score": "colbert"}),
}


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def job_with(folder: Path, kind: str = "biencoder", **options: object) -> TrainJob:
    """A job whose start model drops a tenth by its own configuration."""
    if not (folder / "shards").exists():
        write_toy_model(folder / "start")
        write_toy_shards(folder / "shards", [toy_batch(ragged_rows(seed)) for seed in range(3)])
    variant, own = OPTIONS[kind]
    options = {"hard_negatives": 2, **own, **options}
    return toy_job(folder / "job", folder / "start", folder / "shards", variant, **options)


def gradient(job: TrainJob) -> Tensor:
    """Of all parameters, with open gates: while CDE's are shut, stage 1 has no gradient."""
    learner = build_learner(job)
    learner.model.train()
    for parameter in learner.fresh:
        torch.nn.init.constant_(parameter, 0.5)
    reader = BatchReader(ShardSet.open(job.shards), job.info.prefixes, job.common.hard_negatives)
    learner.backward(learner.prepare(reader.read(1, slice(None))))
    return torch.cat([each.grad.flatten() for each in learner.model.parameters() if each.grad is not None])


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_gradient_cache_gives_the_gradient_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    job = job_with(tmp_path, kind, dropout=0.3, mini_batch_size=3)
    cached, again = gradient(job), gradient(job)
    assert torch.equal(cached, again)
    monkeypatch.setattr(Memory, "keeps", lambda *_: True)  # all graphs: what a gradient cache saves
    assert_close(gradient(job), cached)
    other = gradient(job_with(tmp_path, kind, dropout=0.2, mini_batch_size=3))
    assert torch.cosine_similarity(other, cached, dim=0) < 0.99, "dropout matters"


@pytest.mark.parametrize("kind", OPTIONS)
def test_without_dropout_groups_change_nothing(tmp_path: Path, kind: str) -> None:
    """That is the default, whatever the start model drops."""
    whole, parts = (gradient(job_with(tmp_path, kind, mini_batch_size=most)) for most in (32, 3))
    assert_close(parts, whole)


def test_null_leaves_the_rates_of_the_start_model(tmp_path: Path) -> None:
    own, same, none = (gradient(job_with(tmp_path, dropout=rate)) for rate in (None, 0.1, 0.0))
    assert torch.equal(own, same)
    assert not torch.equal(own, none)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_decides_what_any_encoder_drops_and_other_draws_go_on(kind: str) -> None:
    model = backbone(kind).train()
    ids = torch.randint(5, 20, (4, 9))

    def states(*seed: int) -> Tensor:
        with drawing(seed, CPU), torch.no_grad():
            found: Tensor = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        return found

    set_dropout(model, 0)
    set_dropout(model, 0.2)
    before = torch.get_rng_state()
    once, other, again = states(1, 2), states(1, 3), states(1, 2)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(once, again)
    assert (once - other).abs().mean() > 0.01
    set_dropout(model, 0.0)
    plain = states(1, 2)
    assert torch.equal(plain, states(1, 3))
    torch.testing.assert_close(plain, model.eval() and states(1, 2))


def assert_close(found: Tensor, expected: Tensor) -> None:
    assert torch.cosine_similarity(found, expected, dim=0) > 0.99999
    assert abs(found.norm() / expected.norm() - 1) < 1e-4
