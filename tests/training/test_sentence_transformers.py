"""The trainer of sentence-transformers gets our batches, and its loss is ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import TrainerCallback

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from batchwright.training.sentence_transformers import (
    CachedMaskedMultipleNegativesRankingLoss,
    MaskedMultipleNegativesRankingLoss,
    shard_dataset,
    training_arguments,
)
from tests.helpers import annotate_shards
from tests.train.toys import toy_job, write_toy_model
from tests.training.toys import BATCHES, SIZE, write_shards, write_static_model
from trainers.biencoder import build_learner

TEMPERATURE = 0.1
LOSSES = [
    MaskedMultipleNegativesRankingLoss,
    lambda model, scale: CachedMaskedMultipleNegativesRankingLoss(model, scale, mini_batch_size=3),
]
Build = Callable[[SentenceTransformer, float], torch.nn.Module]


@pytest.fixture
def shards(tmp_path: Path) -> ShardSet:
    return write_shards(tmp_path / "shards")


def trainer(
    shards: ShardSet,
    model: SentenceTransformer,
    folder: Path,
    loss: Build = MaskedMultipleNegativesRankingLoss,
    hard_negatives: int = 0,
    whole_domain: bool = False,
    **changes: Any,
) -> SentenceTransformerTrainer:
    given = {"report_to": "none", "use_cpu": True, "save_strategy": "no", **training_arguments(shards), **changes}
    arguments = SentenceTransformerTrainingArguments(str(folder / "out"), **given)
    dataset = shard_dataset(shards, hard_negatives, whole_domain)
    return SentenceTransformerTrainer(model, arguments, dataset, loss=loss(model, 1 / TEMPERATURE))


@pytest.mark.parametrize("loss", LOSSES, ids=["plain", "cached"])
@pytest.mark.parametrize(
    ("hard_negatives", "whole_domain", "dimensions"),
    [(0, False, None), (2, False, None), (2, True, None), (2, False, {8: 0.5, 16: 1})],
)
def test_loss_and_gradient_are_those_of_our_trainer(
    shards: ShardSet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loss: Build,
    hard_negatives: int,
    whole_domain: bool,
    dimensions: dict[int, float] | None,
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    start = write_toy_model(tmp_path / "start", dropout=0.0)
    own = {"hard_negatives": hard_negatives, "dimensions": dimensions}
    job = toy_job(tmp_path, start, shards.folder, temperature=TEMPERATURE, **own)
    learner = build_learner(job)
    reader = BatchReader(shards, job.info.prefixes, hard_negatives, whole_domain)
    model = SentenceTransformer(str(start), device="cpu")
    model.max_seq_length = job.info.max_length
    built = matryoshka(loss, dimensions) if dimensions else loss
    theirs = trainer(shards, model, tmp_path, built, hard_negatives, whole_domain)
    for number, inputs in enumerate(theirs.get_train_dataloader()):
        ours = learner.backward(learner.prepare(reader.read(number, slice(None))))
        found = theirs.compute_loss(model, inputs)
        found.backward()
        assert found.item() == pytest.approx(float(ours.loss), abs=1e-5)
        torch.testing.assert_close(_take_gradient(model), _take_gradient(learner.model), rtol=1e-3, atol=1e-5)
    assert number == BATCHES - 1


def matryoshka(loss: Build, dimensions: dict[int, float]) -> Build:
    weights = list(dimensions.values())
    return lambda model, scale: MatryoshkaLoss(model, loss(model, scale), list(dimensions), weights)


def _take_gradient(model: torch.nn.Module) -> torch.Tensor:
    flat = torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])
    model.zero_grad()
    return flat


class Recorder(MaskedMultipleNegativesRankingLoss):
    """Writes down the packed batches that reach it."""

    def __init__(self, model: SentenceTransformer, scale: float) -> None:
        super().__init__(model, scale)
        self.seen: list[int] = []

    def compute_loss_from_embeddings(self, embeddings: list[torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
        self.seen.append(int(labels[0, :8].contiguous().view(torch.int64)))
        return super().compute_loss_from_embeddings(embeddings, labels)


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({}, range(8)),
        ({"dataloader_drop_last": True, "seed": 5}, range(8)),
        # Its worker is forked, which may hang in a process in which many tests have left threads behind.
        pytest.param({"dataloader_drop_last": True, "dataloader_num_workers": 1}, range(8), marks=pytest.mark.slow),
        ({"skip": 1}, range(4, 8)),
        ({"max_steps": 6}, range(6)),
        ({"gradient_accumulation_steps": 2}, range(8)),
    ],
)
def test_every_packed_batch_is_trained_on_once_and_in_order(shards: ShardSet, tmp_path: Path, changes, numbers) -> None:
    chosen = training_arguments(shards, skip_epochs=changes.pop("skip", 0))
    training = trainer(shards, _static(tmp_path), tmp_path, Recorder, 2, **chosen, **changes)
    training.train()
    assert training.loss.seen == list(numbers)


class Stop(TrainerCallback):
    """Stops after step 6, in the middle of the second epoch."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop = state.global_step == 6


def test_a_resumed_training_goes_on_with_the_next_batch(shards: ShardSet, tmp_path: Path) -> None:
    saving = {"save_strategy": "steps", "save_steps": 3}
    first = trainer(shards, _static(tmp_path), tmp_path, Recorder, **saving)
    first.add_callback(Stop())
    first.train()
    second = trainer(shards, _static(tmp_path), tmp_path, Recorder, **saving)
    second.train(resume_from_checkpoint=True)
    assert (first.loss.seen, second.loss.seen) == (list(range(6)), [6, 7])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_sampler": "batch_sampler"}, "10 rows of .* packed batch"),
        ({"batch_sampler": "no_duplicates"}, "10 rows of .* packed batch"),
        ({"per_device_train_batch_size": 5}, "batches have 5 rows, the packed ones 10"),
        ({"per_device_train_batch_size": 20}, "batches have 20 rows, the packed ones 10"),
        ({"num_train_epochs": 3}, "epoch 2 of the shards was asked for"),
    ],
)
def test_batches_that_would_be_mixed_or_cut_are_refused(shards: ShardSet, tmp_path: Path, changes, message) -> None:
    with pytest.raises(InputError, match=message):
        trainer(shards, _static(tmp_path), tmp_path, **changes).train()


def test_half_a_batch_does_not_pass_the_loss(shards: ShardSet, tmp_path: Path) -> None:
    changes = {"batch_sampler": "batch_sampler", "per_device_train_batch_size": 8}
    with pytest.raises(InputError, match=r"8 rows of .* packed batch"):
        trainer(shards, _static(tmp_path), tmp_path, **changes).train()


def test_other_datasets_are_refused(shards: ShardSet, tmp_path: Path) -> None:
    training = trainer(shards, _static(tmp_path), tmp_path)
    training.train_dataset = shard_dataset(shards).select(range(70))
    with pytest.raises(InputError, match="the dataset has 70 rows, the shards 80"):
        training.train()
    plain = trainer(shards, _static(tmp_path), tmp_path)
    plain.train_dataset = plain.train_dataset.with_transform(lambda rows: {"query": ["a"] * 10, "document": ["b"] * 10})
    with pytest.raises(InputError, match="train on a dataset that shard_dataset made"):
        plain.train()


def test_several_processes_are_refused(shards: ShardSet, tmp_path: Path) -> None:
    training = trainer(shards, _static(tmp_path), tmp_path)
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        with pytest.raises(InputError, match="2 processes would each take other batches"):
            training.get_train_dataloader()
    finally:
        distributed.destroy_process_group()


def test_an_epoch_that_was_not_packed_is_refused_at_once(shards: ShardSet) -> None:
    with pytest.raises(InputError, match="epoch 2 of the shards was asked for"):
        training_arguments(shards, skip_epochs=2)


def test_rows_are_those_of_the_shards_in_whatever_order_they_are_asked_for(shards: ShardSet) -> None:
    packed = [row for number in range(len(shards)) for row in shards.batch(number).to_pylist()]
    dataset = shard_dataset(shards, hard_negatives=2)
    asked = [79, 3, 4, 41, 5, 79]
    found = dataset[asked]
    assert found["query"] == [packed[row]["query"] for row in asked]
    for place in range(2):
        expected = [[*packed[row]["negatives"], *[packed[row]["document"]] * 2][place] for row in asked]
        assert found[f"negative_{place + 1}"] == expected
    assert len(dataset) == len(packed) == 2 * BATCHES * SIZE
    annotate_shards(shards.folder)
    again = ShardSet.open(shards.folder)
    assert shard_dataset(again, 2)[asked].keys() == found.keys()
    named = shard_dataset(again, 2, metadata=True)[asked]
    assert (named["place"], named["query"]) == (["9", "3", "4", "1", "5", "9"], found["query"])
    assert named["their id"] == [packed[row]["id"] for row in asked]


def _static(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(str(write_static_model(folder / "static")), device="cpu")
