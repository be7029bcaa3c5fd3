"""The batch sampler: packed batches, whole and in their order."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch import distributed

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet


def training_arguments(shards: ShardSet, skip_epochs: int = 0) -> dict[str, Any]:
    """Return the arguments of ``SentenceTransformerTrainingArguments`` that train on every packed batch once.

    Epochs before ``skip_epochs`` are left out.
    """
    shards.manifest.batches_of(skip_epochs)  # refuses an epoch that was not packed
    return {
        "batch_sampler": partial(ShardBatchSampler, shards, skip_epochs),
        "num_train_epochs": len(shards.manifest.epochs) - skip_epochs,
        "per_device_train_batch_size": shards.manifest.batch_size,
    }


class ShardBatchSampler(DefaultBatchSampler):
    """Yields the rows of the packed batches: the trainer's epoch e is the packed epoch ``skip_epochs + e``.

    ``dataset`` holds the rows of ``shards`` in their order, as ``shard_dataset`` and ``datasets.load_dataset`` return
    them. All packed batches are whole, so that ``drop_last`` changes nothing; generator and seed are not used.

    Raises:
        InputError: the trainer would cut or mix batches, or asks for an epoch that was not packed.
    """

    def __init__(
        self,
        shards: ShardSet,
        skip_epochs: int,
        dataset: Dataset,
        batch_size: int,
        drop_last: bool = False,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, valid_label_columns, generator, seed)
        self._manifest, self._skipped = shards.manifest, skip_epochs
        self._check(len(dataset))

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the rows of each batch of the epoch that ``set_epoch`` set last."""
        for number in self._manifest.batches_of(self._skipped + self.epoch):
            yield list(range(number * self.batch_size, (number + 1) * self.batch_size))

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self._manifest.batches_of(self._skipped))

    def _check(self, rows: int) -> None:
        manifest = self._manifest
        processes = distributed.get_world_size() if distributed.is_initialized() else 1
        if processes > 1:
            raise InputError(f"{processes} processes would each take other batches than were packed; train in one")
        if self.batch_size != manifest.batch_size:
            raise InputError(
                f"the trainer's batches have {self.batch_size} rows, the packed ones {manifest.batch_size}; set "
                f"per_device_train_batch_size={manifest.batch_size}, and show the trainer one GPU at most "
                "(CUDA_VISIBLE_DEVICES=0)"
            )
        if rows != manifest.rows:
            raise InputError(
                f"the dataset has {rows:,} rows, the shards {manifest.rows:,}; pass shard_dataset(shards), unfiltered"
            )
        counts = {epoch.batches for epoch in manifest.epochs[self._skipped :]}
        if len(counts) > 1:  # the trainer counts its steps by the first one
            raise InputError(f"the packed epochs have different numbers of batches, {sorted(counts)}; pack them alike")
