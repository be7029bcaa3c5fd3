"""Training steps of this project and of sentence-transformers on shards, and the losses of each variant."""

import statistics
import time
from collections.abc import Callable, Iterator
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
from benchmarks.gpu.corpus import Form, texts, write_shards, write_start
from benchmarks.gpu.measure import Cost, Result, measured, peak_mib, precision, reset_peak
from trainers.common.job import TrainJob, training_device
from trainers.common.params import Common
from trainers.common.passes import set_dropout
from trainers.common.sentence_learner import preprocess
from trainers.common.step_loop import build_optimiser
from trainers.variants import build_learner, load_variant

SEED, TEMPERATURE = 17, 0.05
OPTIONS = {
    "cde": {"context_documents": 8, "context_dropout": 0},
    "biencoder": {},
    "seed_encoder": {},
    "xtr": {"k": 256},
}


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """``prepare`` tokenises a batch, which trainings do in another thread; ``step`` trains and returns the loss."""

    model: nn.Module
    prepare: Callable[[TrainBatch], Any]
    step: Callable[[Any], float]

    def weights(self) -> Tensor:
        """All weights, one after the other."""
        return nn.utils.parameters_to_vector(self.model.parameters()).detach().cpu()


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The loss of each step, the median seconds of a step, the peak of memory, and all trained weights."""

    losses: list[float]
    seconds: float
    mib: int
    weights: Tensor


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


def _stepping(job: TrainJob, model: nn.Module, backward: Callable[[Any], Tensor]) -> Callable[[Any], float]:
    optimiser, _ = build_optimiser(model.train(), job.common, steps=1000)

    def step(prepared: Any) -> float:
        loss = backward(prepared)
        nn.utils.clip_grad_norm_(model.parameters(), job.common.max_grad_norm)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def timed(job: TrainJob, trainer: Trainer, form: Form) -> Cost | None:
    """Time steps on the job's first batch."""
    return measured(partial(trainer.step, trainer.prepare(read(job, 0))), form.repeats)


def curves(form: Form, folder: Path, shards: Path | None, start: Path | None) -> Iterator[Result]:
    """Train a small model on ``shards``, or on generated ones, from the model ``start``, or from random weights.

    Nothing is dropped, so that both precisions draw nothing.
    """
    shards = shards or write_shards(folder / "shards", form.steps, form.pairs, form.cut)
    start = start or write_start(folder / "start", form.mini, form.cut, texts(shards))
    for variant in OPTIONS:
        by_precision = {"float32": _train(form, variant, start, shards, bf16=False)}
        by_precision["bfloat16"] = _train(form, variant, start, shards, bf16=True)
        for step in range(form.steps):
            for name, curve in by_precision.items():
                yield Result("training", f"{variant}, step {step + 1}", f"loss in {name}", curve.losses[step])
        for name, curve in by_precision.items():
            yield Result("training", f"{variant}, {name}", "texts per second", 2 * form.pairs / curve.seconds)
            yield Result("training", f"{variant}, {name}", "MiB", curve.mib)
        again = _train(form, variant, start, shards, bf16=False)
        same = torch.equal(by_precision["float32"].weights, again.weights)
        yield Result("training", f"{variant}, float32", "the same weights again", str(same).lower(), "true")


def _train(form: Form, variant: str, start: Path, shards: Path, *, bf16: bool) -> Curve:
    reset_peak()
    job = plan(variant, start, shards, max(form.chunk_tokens // form.cut, 1), **OPTIONS[variant])
    trainer, losses, seconds = ours(job, bf16=bf16), [], []
    for number in range(form.steps):
        prepared = trainer.prepare(read(job, number))
        began = time.perf_counter()
        losses.append(trainer.step(prepared))  # reading the loss waits for the GPU
        seconds.append(time.perf_counter() - began)
    return Curve(losses=losses, seconds=statistics.median(seconds), mib=peak_mib(), weights=trainer.weights())
