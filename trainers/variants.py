"""The variants by name, and how one is made ready to train. A variant is a package here that has a ``card.md``."""

import importlib
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from batchwright.core.errors import InputError
from batchwright.core.params import Params, load_params
from batchwright.core.terminal import hint
from batchwright.formats.runs import Run
from batchwright.retrievers.common.model_folder import draw_weights, is_static
from trainers.common.backbones import prepare_backbones
from trainers.common.distributed import in_turn, rank, world_size
from trainers.common.job import TrainJob
from trainers.common.params import Common, VariantParams, run_model
from trainers.common.passes import keep_freed_memory, pin_kernels, seed_start
from trainers.common.run import Learner, run_training
from trainers.common.shares import gathered
from trainers.common.step_loop import set_trained, trained_state

VARIANTS = sorted(file.parent.name for file in Path(__file__).parent.glob("*/card.md"))


class Variant(Protocol):
    """What a variant's package provides."""

    Params: type[VariantParams]
    """The parameter group ``train.VARIANT``."""

    def build_learner(self, job: TrainJob) -> Learner:
        """Load the start model, ready for training."""


def load_variant(name: str) -> Variant:
    """Import a variant's package.

    Raises:
        InputError: there is no such variant.
    """
    if name not in VARIANTS:
        raise InputError(f"unknown variant '{name}'{hint(name, VARIANTS)}")
    return cast(Variant, importlib.import_module(f"trainers.{name}"))


def load_run(run: str) -> Run:
    """Read ``runs.RUN``, which may have all parameters of its variant.

    Raises:
        InputError: there is none, or it is not valid.
    """
    variant = load_params(f"runs.{run}", Run).variant
    groups: dict[str, type[Params]] = {"common": Common, variant: load_variant(variant).Params}
    return load_params(f"runs.{run}", run_model(groups))


def build_learner(job: TrainJob) -> Learner:
    """Load the start model, ready for training as the job's parameters say.

    Ranks that share weights load one after the other, since each has all of them meanwhile.

    Raises:
        InputError: there is no such model, or it cannot be trained like that.
    """
    seed_start(job.seed)
    with in_turn() if job.common.fsdp and world_size() > 1 else nullcontext():
        learner = load_variant(job.variant).build_learner(job)
        if job.redraw:
            draw_weights(learner.model, job.seed)
        prepare_backbones(job, learner.model)
        learner.model.to(job.device)
    return learner


def train(job: TrainJob) -> None:
    """Train in this process, possibly as one rank of several; rank 0 writes ``job.model`` and ``job.curve``."""
    if is_static(job.start_model):
        pin_kernels()
        keep_freed_memory()
    run_training(job, build_learner(job), partial(_whole, job))


def _whole(job: TrainJob, learner: Learner) -> Learner:
    """On rank 0, ``learner`` with all weights, in the memory of the processor, if ranks share them."""
    if not (job.common.fsdp and world_size() > 1):
        return learner
    learnt = gathered(trained_state(learner.model))
    if rank() > 0:
        return learner
    alone = job.common.model_copy(update={"fsdp": False})
    whole = build_learner(replace(job, device="cpu", common=alone))
    set_trained(whole.model, learnt)
    return whole
