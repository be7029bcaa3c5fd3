"""The trainer of sentence-transformers gets our batches, and its loss is ours."""

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import (
    MultiVectorEncoder,
    MultiVectorEncoderTrainer,
    MultiVectorEncoderTrainingArguments,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import DistillKLDivLoss, MarginMSELoss, MatryoshkaLoss
from sentence_transformers.util import pairwise_cos_sim
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import TrainerCallback

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from batchwright.training.sentence_transformers import (
    CachedMaskedMultipleNegativesRankingLoss,
    MaskedMultipleNegativesRankingLoss,
    MaskedMultiVectorMultipleNegativesRankingLoss,
    shard_dataset,
    training_arguments,
)
from tests.helpers import annotate_shards
from tests.train.ranks import WORLD, run_ranks
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
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
    scores: bool = False,
    **changes: Any,
) -> SentenceTransformerTrainer:
    given = {"report_to": "none", "use_cpu": True, "save_strategy": "no", **training_arguments(shards), **changes}
    tokens = isinstance(model, MultiVectorEncoder)
    of_kind = MultiVectorEncoderTrainingArguments if tokens else SentenceTransformerTrainingArguments
    arguments = of_kind(str(folder / "out"), **given)
    dataset = shard_dataset(shards, hard_negatives, whole_domain, scores)
    kind = MultiVectorEncoderTrainer if tokens else SentenceTransformerTrainer
    return kind(model, arguments, dataset, loss=loss(model, 1 / TEMPERATURE))


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
    if whole_domain:
        annotate_shards(shards.folder)  # with weights
        shards = ShardSet.open(shards.folder)
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


ALL = ["query_to_document", "document_to_query", "query_to_query", "document_to_document"]


@pytest.mark.parametrize("loss", [MaskedMultipleNegativesRankingLoss, CachedMaskedMultipleNegativesRankingLoss])
def test_options_are_those_of_our_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: Any) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    shards = write_shards(tmp_path / "shards", batches=1, scored=True)
    start = write_toy_model(tmp_path / "start", dropout=0.0, layers=1)
    for options in (
        {"directions": ALL, "hardness_strength": 5},
        {"directions": ALL[:2], "partition_mode": "per_direction"},
        {"hardness_strength": 9, "hardness_mode": "hard_negatives"},
        {"in_batch": False},
        {"distill": {"temperature": 2}, "directions": ALL[:2]},
        {"distill": {"loss": "margin_mse", "weight": None}, "in_batch": False},
    ):
        job = toy_job(tmp_path, start, shards.folder, temperature=TEMPERATURE, hard_negatives=2, **options)
        learner = build_learner(job)
        reader = BatchReader(shards, job.info.prefixes, 2, in_batch=job.common.in_batch, taught="distill" in options)
        ours = learner.backward(learner.prepare(reader.read(0, slice(None))))
        model = SentenceTransformer(str(start), device="cpu")
        model.max_seq_length = job.info.max_length
        theirs = trainer(shards, model, tmp_path, lambda model, scale, given=options: loss(model, scale, **given), 2)
        found = theirs.compute_loss(model, next(iter(theirs.get_train_dataloader())))
        found.backward()
        assert found.item() == pytest.approx(float(ours.loss), abs=1e-5), options
        torch.testing.assert_close(_take_gradient(model), _take_gradient(learner.model), rtol=1e-3, atol=1e-5)
        assert theirs.loss.get_config_dict().items() >= options.items() or "distill" in options


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    model, shards = _static(tmp_path), write_shards(tmp_path / "shards", batches=1)
    for options, message in (
        ({"directions": ["query_to_doc"]}, "query_to_document"),
        ({"directions": ALL[1:]}, "add query_to_document"),
        ({"hardness": 5}, "Extra inputs are not permitted"),
        ({"directions": ALL, "partition_mode": "per_direction"}, "partition_mode does not go together with"),
        ({"directions": ALL, "in_batch": False}, "the masked loss: directions does not go together with in_batch"),
    ):
        with pytest.raises(ValueError if message[0] in "qaE" else InputError, match=message):
            MaskedMultipleNegativesRankingLoss(model, **options)
    for given, options, message in (
        ((0, False), {"distill": {}}, "distill does not go together with hard_negatives: 0"),
        ((2, True), {"directions": ALL}, "directions does not go together with negatives_stand_for: domain"),
        ((2, False), {"distill": {}}, "distill needs shards with a teacher's scores"),
    ):
        build = partial(MaskedMultipleNegativesRankingLoss, **options)
        with pytest.raises(InputError, match=message):
            trainer(shards, model, tmp_path, build, *given).train()


@pytest.mark.parametrize("name", ["kl", "margin_mse"])
def test_scores_are_labels_for_the_losses_that_distil(tmp_path: Path, name: str) -> None:
    shards = write_shards(tmp_path / "shards", batches=1, negatives=[2], scored=True)
    model, temperature = _static(tmp_path), TEMPERATURE if name == "kl" else 1
    build = {
        "kl": lambda model, scale: DistillKLDivLoss(model, pairwise_cos_sim, student_temperature=TEMPERATURE),
        "margin_mse": lambda model, scale: MarginMSELoss(model, pairwise_cos_sim),
    }
    theirs = trainer(shards, model, tmp_path, build[name], 2, scores=True)
    inputs = next(iter(theirs.get_train_dataloader()))
    assert inputs["label"].tolist() == shards.batch(0)["scores"].to_pylist()
    own = {"distill": {"loss": name, "weight": None}}
    ours = trainer(
        shards, model, tmp_path, lambda model, _: MaskedMultipleNegativesRankingLoss(model, 1 / temperature, **own), 2
    )
    expected = ours.compute_loss(model, next(iter(ours.get_train_dataloader()))).item() * temperature**2
    assert theirs.compute_loss(model, inputs).item() == pytest.approx(expected, rel=1e-5)


def test_a_document_that_stands_for_no_hard_negative_has_its_own_score(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards", batches=1, scored=True)
    scores, found = shards.batch(0)["scores"].to_pylist(), shard_dataset(shards, 2, scores=True)[[0, 1, 3]]["label"]
    assert found.tolist() == [[scores[0][0]] * 3, [*scores[1], scores[1][0]], scores[3][:3]]


def test_scores_that_are_not_there_are_refused(shards: ShardSet, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no teacher's scores; run the stage 'teach'"):
        shard_dataset(shards, 2, scores=True)
    rows = [row | {"scores": [1.0, 0.5, 0.25]} for row in toy_rows(4, negatives=2)]
    rows[2]["scores"] = [1.0, 0.5, math.nan]
    partly = ShardSet.open(write_toy_shards(tmp_path / "partly", [toy_batch(rows)]))
    shard_dataset(partly, 1, scores=True)
    with pytest.raises(InputError, match="batch 0, row 2 lacks a teacher's score"):
        shard_dataset(partly, 2, scores=True)
    for given in ({"whole_domain": True, "hard_negatives": 1}, {}):
        with pytest.raises(InputError, match="scores go with hard_negatives of 1 or more"):
            shard_dataset(partly, scores=True, **given)


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


def test_batches_that_cannot_be_divided_evenly_among_processes_are_refused(shards: ShardSet, tmp_path: Path) -> None:
    training = trainer(shards, _static(tmp_path), tmp_path)
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        with pytest.raises(InputError, match="10 rows cannot be divided evenly among 4 processes"):
            training.get_train_dataloader()
    finally:
        distributed.destroy_process_group()


@pytest.mark.slow  # two processes import torch, and train two models
def test_two_processes_train_as_one(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", batches=2, scored=True)
    write_static_model(tmp_path / "static")
    write_toy_model(tmp_path / "bert", dropout=0.0, layers=1)
    MultiVectorEncoder(str(tmp_path / "bert"), device="cpu").save(str(tmp_path / "tokens"))
    _train(-1, tmp_path)
    run_ranks(_train, tmp_path)
    for name in ("static", "bert", "tokens"):
        one, first, second = (torch.load(tmp_path / f"{name}{rank}.pt") for rank in (-1, 0, 1))
        assert torch.equal(first["weights"], second["weights"])
        torch.testing.assert_close(first, one, rtol=1e-4, atol=1e-5)
        assert (one["weights"] - one["before"]).abs().max() > 5e-3


def _train(rank: int, folder: Path) -> None:
    """Train on both epochs by plain gradient descent, which shows a gradient that is too large."""
    if rank >= 0:
        own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": WORLD, "LOCAL_WORLD_SIZE": WORLD}  # as torchrun does
        os.environ |= {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in own.items()}}
        store = distributed.FileStore(str(folder / "store"), WORLD)
        distributed.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    shards = ShardSet.open(folder / "shards")
    options = {"directions": ALL[:2], "hardness_strength": 2, "distill": {}}
    plain = partial(MaskedMultipleNegativesRankingLoss, **options)
    cached = partial(CachedMaskedMultipleNegativesRankingLoss, mini_batch_size=3, **options)
    tokens = partial(MaskedMultiVectorMultipleNegativesRankingLoss, distill={})
    for name, loss in (("static", plain), ("bert", cached), ("tokens", tokens)):
        kind = MultiVectorEncoder if name == "tokens" else SentenceTransformer
        model = kind(str(folder / name), device="cpu")
        before = _weights(model)
        training = trainer(shards, model, folder, loss, 2, optim="sgd", learning_rate=0.02, max_grad_norm=0,
                           lr_scheduler_type="constant", logging_steps=1, disable_tqdm=True)  # fmt: skip
        training.train()
        losses = torch.tensor([step["loss"] for step in training.state.log_history if "loss" in step])
        torch.save({"before": before, "weights": _weights(model), "losses": losses}, folder / f"{name}{rank}.pt")
    if rank >= 0:
        distributed.destroy_process_group()


def _weights(model: SentenceTransformer) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in model.parameters()]).clone()


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
