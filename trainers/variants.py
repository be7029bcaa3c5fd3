"""The variants by name, and how one is made ready to train. A variant is a package here that has a ``card.md``."""

import importlib
from pathlib import Path
from typing import Protocol, cast

from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from batchwright.core.errors import InputError
from batchwright.core.params import Params, load_params
from batchwright.core.terminal import hint
from batchwright.formats.runs import Run
from batchwright.retrievers.common.model_folder import draw_weights, is_static
from trainers.common.job import TrainJob
from trainers.common.packing import backbones
from trainers.common.params import Common, VariantParams, run_model
from trainers.common.passes import dropout_rates, keep_freed_memory, pin_kernels, seed_start, set_dropout
from trainers.common.run import Learner, run_training

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

    Raises:
        InputError: there is no such model, or it cannot be trained like that.
    """
    seed_start(job.seed)
    learner = load_variant(job.variant).build_learner(job)
    if job.redraw:
        draw_weights(learner.model, job.seed)
    prepare_backbones(job, learner.model)
    return learner


def train(job: TrainJob) -> None:
    """Train in this process, possibly as one rank of several; rank 0 writes ``job.model`` and ``job.curve``."""
    if is_static(job.start_model):
        pin_kernels()
        keep_freed_memory()
    run_training(job, build_learner(job))


def prepare_backbones(job: TrainJob, model: nn.Module) -> None:
    """Let all transformers in ``model`` run as the job's parameters ``dropout`` and ``compile`` say.

    Raises:
        InputError: a transformer cannot do it.
    """
    set_dropout(model, job.common.dropout)
    if job.common.compile:
        _compile(job, model)


def _compile(job: TrainJob, model: nn.Module) -> None:
    if job.variant == "cde":
        raise InputError(f"train {job.name}: attention to a context cannot be compiled; set compile to false")
    transformers = backbones(model)
    if not transformers:
        raise InputError(f"model '{job.start_model}': has no transformer; set compile to false")
    for backbone in transformers:
        _check_dropout(job, backbone, "torch.compile")
        for layer in backbone.modules():
            if isinstance(layer, GradientCheckpointingLayer):  # what the library calls the layers that repeat
                layer.compile()  # they share the compiled code


def _check_dropout(job: TrainJob, backbone: PreTrainedModel, what: str) -> None:
    """Neither is sure to draw the same in both passes of a gradient cache."""
    if any(dropout_rates(backbone.config).values()):
        raise InputError(f"train {job.name}: {what} does not go together with dropout; set dropout to 0")
