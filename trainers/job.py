"""Jobs: all that a training process is told, wherever it runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from formats.fingerprint import files_fingerprint, fingerprint
from formats.manifest import Manifest
from formats.models import locate_model, model_hash
from formats.runtime import scratch, train_gpus
from formats.shards import ShardSet
from trainers.params import Common, VariantParams
from trainers.steps import planned_steps


@dataclass(frozen=True, kw_only=True)
class Job:
    """Picklable; all paths are absolute, since workers run in folders of their own.

    Where several machines train, they must share the file system that these paths are on. ``batch_size`` is the
    rows of a batch, over all workers.
    """

    variant: str
    seed: int
    batch_size: int
    model: Path
    scratch: Path
    device: Literal["cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class TrainJob(Job):
    """Training on shards; ``hub_name`` is what the start model is called on the hub, if it is from there."""

    common: Common
    params: VariantParams
    start_model: Path
    hub_name: str | None
    shards: Path
    curve: Path


def plan_job(
    *, variant: str, seed: int, common: Common, params: VariantParams, shards: Path, model: Path, curve: Path
) -> TrainJob:
    """Check the inputs and name the scratch folder after everything that decides the result.

    Raises:
        InputError: there is no such start model, or the shards are missing, damaged or too few.
    """
    start_model = locate_model(params.model, params.revision).resolve()
    shard_set = ShardSet.open(shards)
    planned_steps(shard_set.manifest, common)
    shard_set.verify()
    return TrainJob(
        variant=variant,
        seed=seed,
        batch_size=shard_set.manifest.batch_size,
        common=common,
        params=params,
        start_model=start_model,
        hub_name=None if Path(params.model).is_dir() or ":" in params.model else params.model,
        shards=shards.resolve(),
        model=model.resolve(),
        curve=curve.resolve(),
        scratch=scratch(
            "train", _fingerprint(variant, seed, common, params, start_model, shard_set.manifest)
        ).resolve(),
        device=training_device(),
    )


def training_device() -> Literal["cpu", "cuda"]:
    """What a training process computes on."""
    return "cuda" if train_gpus(int(torch.cuda.is_available())) else "cpu"


def _fingerprint(
    variant: str, seed: int, common: Common, params: VariantParams, start_model: Path, manifest: Manifest
) -> str:
    code = files_fingerprint([Path(__file__).parent])
    parameters = [common.model_dump(), params.model_dump(), manifest.model_dump()]
    return fingerprint(variant, seed, parameters, model_hash(start_model), code)
