"""Training steps of this project and of sentence-transformers on shards."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from accelerate.utils import convert_outputs_to_fp32  # type: ignore[import-untyped]
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from torch import Tensor, nn

from batchwright.core.storage import Storage
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from batchwright.training.batches import BatchReader, TrainBatch
from trainers.common.job import TrainJob, training_device
from trainers.common.params import Common
from trainers.common.passes import set_dropout
from trainers.common.step_loop import build_optimiser
from trainers.variants import build_learner, load_variant

SEED, TEMPERATURE = 17, 0.05


class Kernels(NamedTuple):
    """What torch's global switches let it compute with; trainings that take turns differ in them."""

    deterministic: bool
    warn_only: bool
    cudnn_attention: bool

    @classmethod
    def now(cls) -> Self:
        """As the switches are."""
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn: bool = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
        return cls(torch.are_deterministic_algorithms_enabled(), warn_only, cudnn)

    def use(self) -> None:
        """Set the switches."""
        torch.use_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)
        torch.backends.cuda.enable_cudnn_sdp(self.cudnn_attention)


AS_TORCH_COMES = Kernels.now()


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """``prepare`` tokenises a batch, which trainings do in another thread; ``step`` trains and returns the loss.

    ``kernels`` are to be used while it does. ``backward`` is the step without the optimiser.
    """

    model: nn.Module
    prepare: Callable[[TrainBatch], Any]
    backward: Callable[[Any], Tensor]
    step: Callable[[Any], float]
    kernels: Kernels

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
    AS_TORCH_COMES.use()
    common = job.common.model_copy(update={"precision": "bfloat16" if bf16 else "float32"})
    learner = build_learner(replace(job, common=common))

    def backward(prepared: Any) -> Tensor:
        return learner.backward(prepared).loss

    return _trainer(job, learner.model, learner.prepare, backward, Kernels.now())


def theirs(job: TrainJob, *, bf16: bool, cache: bool = True, by_tokens: int | None = None) -> Trainer:
    """Train as sentence-transformers' own trainer does, and without masks.

    With ``cache``, so many texts as the job says go through the model at once, or so many as have ``by_tokens`` tokens.
    """
    AS_TORCH_COMES.use()
    model = load_model(job.start_model, job.info.max_length, job.device)
    set_dropout(model, job.common.dropout)
    if bf16:  # what accelerate does to a model: each call casts the weights, and the loss is outside
        autocast = torch.autocast(job.device, torch.bfloat16)
        model.forward = convert_outputs_to_fp32(autocast(model.forward))  # type: ignore[method-assign]
    loss: nn.Module = MultipleNegativesRankingLoss(model, 1 / TEMPERATURE)
    if cache:
        assert job.common.mini_batch_size != "auto"
        loss = CachedMultipleNegativesRankingLoss(
            model, 1 / TEMPERATURE, mini_batch_size=job.common.mini_batch_size, mini_batch_num_tokens=by_tokens
        )

    def prepare(batch: TrainBatch) -> list[dict[str, Tensor]]:
        features = [model.preprocess(texts) for texts in (batch.queries, batch.documents)]
        return [{key: value for key, value in side.items() if isinstance(value, Tensor)} for side in features]

    def backward(features: list[dict[str, Tensor]]) -> Tensor:
        placed = [{key: value.to(job.device) for key, value in side.items()} for side in features]
        found: Tensor = loss(placed, torch.empty(0))
        torch.autograd.backward(found)
        return found

    return _trainer(job, model, prepare, backward, AS_TORCH_COMES)


def _trainer(
    job: TrainJob,
    model: nn.Module,
    prepare: Callable[[TrainBatch], Any],
    backward: Callable[[Any], Tensor],
    kernels: Kernels,
) -> Trainer:
    optimiser, _ = build_optimiser(model.train(), job.common, steps=1000)

    def step(prepared: Any) -> float:
        loss = backward(prepared)
        nn.utils.clip_grad_norm_(model.parameters(), job.common.max_grad_norm)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return float(loss.detach())

    return Trainer(model=model, prepare=prepare, backward=backward, step=step, kernels=kernels)
