"""Jobs that train on shards."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from batchwright.core.fingerprint import fingerprint
from batchwright.core.runtime import scratch
from batchwright.formats.models import model_hash, weights_size
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import ModelInfo
from trainers.common.epochs import planned_batches
from trainers.common.job import Job, check_room, job_storage, training_code, training_device
from trainers.common.params import Common, VariantParams
from trainers.common.trackers import chosen_tracker


class DevMeasure(Protocol):
    """Scores a model on dev queries; it travels to the training processes by pickle."""

    @property
    def fingerprint(self) -> str:
        """Hash of the queries and documents."""

    def __call__(self, folder: Path) -> Mapping[str, float]:
        """Score the trained model in ``folder``: columns of the dev curve."""


@dataclass(frozen=True, kw_only=True)
class TrainJob(Job):
    """A job that trains a ``variant`` on shards, from a start model that ``info`` describes.

    ``dev`` scores the model in training, into ``dev_curve``.
    """

    variant: str
    common: Common
    params: VariantParams
    info: ModelInfo
    start_model: Path
    shards: Path
    curve: Path
    dev: DevMeasure | None = None

    @property
    def dev_curve(self) -> Path:
        """The curve of quality, beside that of the loss."""
        return self.curve.with_name(f"{self.curve.stem}-dev.tsv")

    @property
    def settings(self) -> dict[str, Any]:
        """See ``Job``."""
        return {"variant": self.variant, "seed": self.seed, **self.common.model_dump(), **self.params.model_dump()}


def plan_job(
    *,
    name: str,
    variant: str,
    seed: int,
    common: Common,
    params: VariantParams,
    start: Path,
    shards: Path,
    model: Path,
    curve: Path,
    dev: DevMeasure | None = None,
) -> TrainJob:
    """Check the inputs and build the job. Its scratch folder is named after everything that affects the result.

    Raises:
        InputError: the start model is missing, the shards are missing, damaged or hold too few batches, or there is
            not enough disk.
    """
    info = ModelInfo.read(start)
    shard_set = ShardSet.open(shards)
    planned_batches(shard_set, common)
    shard_set.verify()
    settings = [common.model_dump(), params.model_dump(), info.model_dump()]
    watched = dev.fingerprint if dev else None
    decides = [variant, seed, settings, watched, shard_set.manifest.model_dump(), model_hash(start), training_code()]
    unfinished = scratch("train", fingerprint(name, *decides)).resolve()
    storage = job_storage(name, unfinished)
    check_room(weights_size(start), storage, model)  # what a batch takes comes on top
    return TrainJob(
        name=name,
        variant=variant,
        seed=seed,
        batch_size=shard_set.manifest.batch_size,
        common=common,
        params=params,
        info=info,
        start_model=start.resolve(),
        shards=shards.resolve(),
        model=model.resolve(),
        curve=curve.resolve(),
        dev=dev,
        scratch=unfinished,
        storage=storage,
        device=training_device(),
        tracker=chosen_tracker(),
    )
