"""The variants by name. A variant is a package in this folder that has a ``card.md``."""

import importlib
from pathlib import Path
from typing import Protocol, cast

from batchwright.core.errors import InputError
from batchwright.core.terminal import hint
from trainers.common.backbones import prepare_backbones
from trainers.common.job import TrainJob
from trainers.common.params import VariantParams
from trainers.common.passes import seed_start
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


def build_learner(job: TrainJob) -> Learner:
    """Load the start model, ready for training as the job's parameters say.

    Raises:
        InputError: there is no such model, or it cannot be trained like that.
    """
    seed_start(job.seed)
    learner = load_variant(job.variant).build_learner(job)
    prepare_backbones(job, learner.model)
    return learner


def train(job: TrainJob) -> None:
    """Train in this process, possibly as one rank of several; rank 0 writes ``job.model`` and ``job.curve``."""
    run_training(job, build_learner(job))
