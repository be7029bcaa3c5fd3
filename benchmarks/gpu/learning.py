"""Training steps of this project, and of sentence-transformers, on batches of shards."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from torch import Tensor, nn

from batchwright.core.storage import Storage
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from batchwright.training.batches import BatchReader, TrainBatch
from benchmarks.gpu.form import Form
from benchmarks.gpu.machine import Spent, measured, precision
from trainers.common.job import TrainJob, training_device
from trainers.common.params import Common
from trainers.common.passes import set_dropout
from trainers.common.sentence_learner import preprocess
from trainers.common.step_loop import build_optimiser
from trainers.variants import build_learner, load_variant

SEED, TEMPERATURE = 17, 0.05


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """``prepare`` tokenises a batch, which trainings do in another thread; ``step`` trains and returns the loss."""

    model: nn.Module
    prepare: Callable[[TrainBatch], Any]
    step: Callable[[Any], float]

    def weights(self) -> Tensor:
        """All weights, one after the other."""
        return nn.utils.parameters_to_vector(self.model.parameters()).detach().cpu()


def plan(variant: str, start: Path, shards: Path, chunk: int, **options: Any) -> TrainJob:
    """Plan a training that reads ``chunk`` texts at a time; ``options`` are parameters of the variant."""
    unused = start.parent / variant
    return TrainJob(
        name=variant,
        variant=variant,
        seed=SEED,
        batch_size=ShardSet.open(shards).manifest.batch_size,
        common=Common(
            epochs=1, mini_batch_size=chunk, learning_rate=1e-4, warmup_ratio=0, weight_decay=0.01, max_grad_norm=1
        ),
        params=load_variant(variant).Params(temperature=TEMPERATURE, **options),
        info=ModelInfo.read(start),
        start_model=start,
        shards=shards,
        model=unused,
        curve=unused,
        scratch=unused,
        storage=Storage.at(unused),
        device=training_device(),
    )


def read(job: TrainJob, number: int) -> TrainBatch:
    """Read a batch of the job's shards, from the first one on again and again."""
    shards = ShardSet.open(job.shards)
    return BatchReader(shards, job.info.prefixes, 0).read(number % len(shards), slice(0, job.batch_size))


def ours(job: TrainJob, *, bf16: bool) -> Trainer:
    """Train as this project does, with deterministic kernels."""
    common = job.common.model_copy(update={"precision": "bfloat16" if bf16 else "float32"})
    learner = build_learner(replace(job, common=common))
    step = _stepping(job, learner.model, lambda prepared: learner.backward(prepared).loss)
    return Trainer(model=learner.model, prepare=learner.prepare, step=step)


def theirs(job: TrainJob, *, bf16: bool) -> Trainer:
    """Train as sentence-transformers does, with its gradient cache and without masks."""
    assert job.common.mini_batch_size != "auto"
    torch.use_deterministic_algorithms(False)
    model = load_model(job.start_model, job.info.max_length, job.device)
    set_dropout(model, job.common.dropout)
    loss = CachedMultipleNegativesRankingLoss(model, 1 / TEMPERATURE, mini_batch_size=job.common.mini_batch_size)

    def prepare(batch: TrainBatch) -> list[dict[str, Tensor]]:
        features = [preprocess(model, texts) for texts in (batch.queries, batch.documents)]
        return [{key: value for key, value in side.items() if isinstance(value, Tensor)} for side in features]

    def backward(features: list[dict[str, Tensor]]) -> Tensor:
        placed = [{key: value.to(job.device) for key, value in side.items()} for side in features]
        with precision(bf16):
            found: Tensor = loss(placed, torch.empty(0))
            torch.autograd.backward(found)
        return found

    return Trainer(model=model, prepare=prepare, step=_stepping(job, model, backward))


def timed(job: TrainJob, trainer: Trainer, form: Form) -> Spent | None:
    """Time steps on the job's first batch."""
    return measured(partial(trainer.step, trainer.prepare(read(job, 0))), form.repeats)


def _stepping(job: TrainJob, model: nn.Module, backward: Callable[[Any], Tensor]) -> Callable[[Any], float]:
    optimiser, _ = build_optimiser(model.train(), job.common, steps=1000)

    def step(prepared: Any) -> float:
        loss = backward(prepared)
        nn.utils.clip_grad_norm_(model.parameters(), job.common.max_grad_norm)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step
