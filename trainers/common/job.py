"""Training jobs: everything that a training process needs to know, wherever it runs."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch

from batchwright.core import runtime
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import code_fingerprint, fingerprint
from batchwright.core.storage import Storage, check_disk
from batchwright.formats.models import model_hash, weights_size
from batchwright.formats.shards import ShardSet, read_scores
from batchwright.retrievers.common.model_folder import ModelInfo
from trainers.common.params import Common, VariantParams

Report = Callable[[Mapping[str, float | int], Storage | None], None]
"""Called on every rank after a checkpoint, with the last row of the curve, and on rank 0 with the checkpoint."""


def report_nothing(row: Mapping[str, float | int], checkpoint: Storage | None) -> None:
    """For trainings that nobody follows but their curves."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training job. It can be pickled, and all paths are absolute, since each worker runs in its own folder.

    ``name`` appears in progress bars and file names. ``batch_size`` is the number of rows in a batch over all workers.
    Workers on several machines must share the file system that the paths are on. ``storage`` keeps what a resumed run
    goes on with. TensorBoard's event files go into the folder ``tensorboard``, if there is one.
    """

    name: str
    seed: int
    batch_size: int
    model: Path
    scratch: Path
    storage: Storage
    device: Literal["cpu", "cuda"]
    tensorboard: Path | None = None
    report: Report = report_nothing


def job_storage(name: str, scratch: Path) -> Storage:
    """Return where the job keeps its checkpoints; its name is as unique as that of its scratch folder.

    Raises:
        InputError: ``BATCHWRIGHT_STORAGE`` is nowhere.
    """
    return Storage.at(runtime.storage() or scratch) / f"{name}-{scratch.name}"


def training_device() -> Literal["cpu", "cuda"]:
    """The device that training processes use."""
    return "cuda" if runtime.train_gpus(int(torch.cuda.is_available())) else "cpu"


def training_code() -> str:
    """Fingerprint of all code that can affect the result of training."""
    return code_fingerprint(Path(__file__).parents[1])


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

    ``models`` are those that ``params`` name. ``dev`` scores the model in training, into ``dev_curve``. With
    ``redraw``, random weights of the start model are drawn anew, with the job's seed. ``every`` above 1 trains on every
    so-manyth batch only: a trial. ``note`` is a sentence on the settings for the model card.
    """

    variant: str
    common: Common
    params: VariantParams
    info: ModelInfo
    start_model: Path
    shards: Path
    curve: Path
    models: Sequence[Path] = ()
    redraw: bool = False
    dev: DevMeasure | None = None
    every: int = 1
    note: str = ""

    @property
    def loading_device(self) -> str:
        """Where the start model is loaded; a GPU may have no room for all of one whose weights are shared."""
        return "cpu" if self.common.fsdp else self.device

    @property
    def dev_curve(self) -> Path:
        """The curve of quality, beside that of the loss."""
        return self.curve.with_name(f"{self.curve.stem}-dev.tsv")


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
    redraw: bool = False,
    dev: DevMeasure | None = None,
    note: str = "",
) -> TrainJob:
    """Check the inputs and build the job. Its scratch folder is named after everything that affects the result.

    Raises:
        InputError: parameters do not go together, the start model is missing, the shards are missing, damaged or hold
            too few batches, no negatives or no scores, or there is not enough disk.
    """
    common.check(f"train {name}", common.hard_negatives, common.negatives_stand_for)
    common.check_memory(name)
    params.check(name, common)
    info, weights = ModelInfo.read(start), weights_size(start)
    models = params.models()
    for folder in models:
        ModelInfo.read(folder)  # says how to get it if it is not there
    shard_set = ShardSet.open(shards)
    params = params.settled(name, start, partial(_documents, shard_set, common.domains))
    batches = planned_batches(shard_set, common)
    shard_set.verify()
    if common.distill:
        _check_scores(name, shard_set, batches, common)
    if not common.in_batch:
        _check_negatives(name, shard_set, batches, common)
    elif common.hard_negatives:
        _tell_of_no_negatives(name, shard_set, batches, common)
    redraw &= info.random
    settings = [common.model_dump(), params.model_dump(), info.model_dump(), redraw]
    watched = dev.fingerprint if dev else None
    hashes = [model_hash(folder) for folder in (start, *models)]
    decides = [variant, seed, settings, watched, shard_set.manifest.model_dump(), *hashes, training_code()]
    unfinished = runtime.scratch("train", fingerprint(name, *decides)).resolve()
    storage = job_storage(name, unfinished)
    if not storage.names():  # room for three checkpoints: weights and AdamW's two moments; adapters' are small
        place = storage.local or Path(tempfile.gettempdir())  # object storage is written from there
        kept = 0 if common.lora else 9 * weights
        check_disk({place: kept, model.parent: weights}, f"training a model of {weights / 1e9:.1f} GB")
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
        models=[folder.resolve() for folder in models],
        redraw=redraw,
        dev=dev,
        note=note,
        scratch=unfinished,
        storage=storage,
        device=training_device(),
        tensorboard=runtime.tensorboard(),
    )


def planned_batches(shards: ShardSet, common: Common) -> Sequence[int]:
    """The numbers of the batches that ``train.common`` requests, one a step.

    Raises:
        InputError: the shards hold fewer epochs or batches than requested, no batches at all, or none of a domain.
    """
    manifest = shards.manifest
    packed, skipped = len(manifest.epochs), common.skip_epochs
    if skipped + common.epochs > packed:
        wanted = f"epochs is {common.epochs}" + (f" after skip_epochs {skipped}" if skipped else "")
        raise InputError(f"{wanted}, but the shards hold {packed}; lower it, or raise pack.epochs")
    first, available = (
        sum(epoch.batches for epoch in epochs)
        for epochs in (manifest.epochs[:skipped], manifest.epochs[skipped:][: common.epochs])
    )
    batches = _of_domains(shards, range(first, first + available), common.domains)
    if common.steps is not None and common.steps > len(batches):
        of = f" of {_listed(common.domains)}" if common.domains else ""
        raise InputError(
            f"steps is {common.steps}, but {common.epochs} epoch(s) of the shards hold {len(batches)} "
            f"batches{of}; lower it, or raise epochs and pack.epochs"
        )
    if not batches:
        raise InputError(
            "the shards hold no batches; add pairs or lower pack.batch_size, and run the stage 'pack' again"
        )
    return batches[: common.steps]


def _documents(shards: ShardSet, domains: Sequence[str] | None) -> list[int]:
    """The number of documents of each domain that is trained on."""
    return [shards.documents(domain) for domain in sorted(domains or set(shards.domains()))]


def _tell_of_no_negatives(name: str, shards: ShardSet, batches: Sequence[int], common: Common) -> None:
    """Tell if no pair has the hard negatives that are asked for."""
    if not any(shards.batch(number)["negatives"].value_lengths().to_numpy().any() for number in batches):
        print(
            f"warning: train {name}: hard_negatives is {common.hard_negatives}, and no pair of {shards.folder} has "
            "any, so none is trained with; sources or the stage 'mine' give some",
            file=sys.stderr,
        )


def _check_negatives(name: str, shards: ShardSet, batches: Sequence[int], common: Common) -> None:
    """Check that pairs have hard negatives, the only ones without those in the batch, and tell of pairs without."""
    counts = [shards.batch(number)["negatives"].value_lengths().to_numpy() for number in batches]
    pairs, without = sum(map(len, counts)), sum(int((each == 0).sum()) for each in counts)
    if without == pairs or not common.hard_negatives:
        lacking = "the pairs have no hard negatives" if without == pairs else "hard_negatives is 0"
        raise InputError(
            f"train {name}: in_batch is false and {lacking}, so there are no negatives; set in_batch to true, or use "
            "pairs with hard negatives, which sources or the stage 'mine' give, and raise hard_negatives"
        )
    if without:
        print(
            f"warning: train {name}: {without:,} of {pairs:,} pairs have no hard negatives and teach nothing, since "
            "in_batch is false",
            file=sys.stderr,
        )


def _check_scores(name: str, shards: ShardSet, batches: Sequence[int], common: Common) -> None:
    """Check that a teacher scored pairs and their hard negatives, and tell of pairs without."""
    taught = sum(_learning(shards, number, common.hard_negatives) for number in batches) if shards.scored else 0
    pairs = len(batches) * shards.manifest.batch_size
    if not taught:
        lacking = "scored no pair together with a hard negative" if shards.scored else "has scored none of their pairs"
        raise InputError(
            f"train {name}: distill needs a teacher, which {lacking} in {shards.folder}; train on batches that the "
            "stage 'teach' made of batches with hard negatives, or name columns.scores of the source, or remove distill"
        )
    if taught < pairs:
        print(
            f"warning: train {name}: of {pairs:,} pairs, {pairs - taught:,} have no teacher's scores of their document "
            "and a hard negative; distill learns nothing from these",
            file=sys.stderr,
        )


def _learning(shards: ShardSet, number: int, hard_negatives: int) -> int:
    """Count the pairs of a batch with scores to learn from."""
    there = np.isfinite(read_scores(shards.batch(number), hard_negatives))
    return int((there[:, 0] & there[:, 1:].any(axis=1)).sum())


def _of_domains(shards: ShardSet, batches: range, domains: Sequence[str] | None) -> Sequence[int]:
    if domains is None:
        return batches
    of_batch = shards.domains()
    if absent := set(domains) - set(of_batch):
        raise InputError(
            f"domains names {_listed(absent)}, but the shards hold batches of {_listed(set(of_batch))}; correct it"
        )
    return [batch for batch in batches if of_batch[batch] in domains]


def _listed(domains: Iterable[str]) -> str:
    return ", ".join(f"'{domain}'" for domain in sorted(domains))
