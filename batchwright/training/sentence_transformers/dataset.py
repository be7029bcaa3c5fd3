"""The column ``label``: what a row tells the loss about its batch, as bytes, which trainers hand on untouched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch import Tensor, distributed

from batchwright.core.errors import InputError
from batchwright.formats.metadata import metadata_columns
from batchwright.formats.shards import ShardSet

HEADER = 5 * 8
"""Bytes in front of a row's mask: as int64, batch, row, batch size, how many hard negatives it has, and whether the
batch stands for its domain. If it does, a float32 for each document of the batch comes between header and mask."""


class Marks(NamedTuple):
    """As in ``TrainBatch``: ``masked`` is ``(B, B)`` bool, ``negative_counts`` ``(B,)``."""

    masked: Tensor
    negative_counts: Tensor
    stands_for: Tensor | None


def encode(
    batch: int,
    rows: NDArray[np.int64],
    size: int,
    counts: NDArray[np.int64],
    masks: Sequence[bytes],
    stands_for: NDArray[np.float32] | None,
) -> Tensor:
    """Return the labels, a line of uint8 each, of some ``rows`` ``(n,)`` of a batch; ``stands_for`` is the batch's."""
    counted = np.empty((len(rows), 0), np.float32) if stands_for is None else stands_for[rows]
    same = [np.full(len(rows), each) for each in (batch, size, counted.shape[1] > 0)]
    header = np.stack([same[0], rows, same[1], counts, same[2]], axis=1).astype(np.int64)
    bits = np.frombuffer(b"".join(masks), dtype=np.uint8).reshape(len(rows), -1)
    return torch.from_numpy(np.concatenate([header.view(np.uint8), counted.view(np.uint8), bits], axis=1))


def decode(labels: Tensor | None) -> Marks:
    """Read the labels of one training batch.

    Raises:
        InputError: there are none, or their rows are not one whole training batch in its order.
    """
    if labels is None or labels.dtype != torch.uint8:
        raise InputError("the masked loss needs the masks; train on a dataset that shard_dataset made")
    header = labels[:, :HEADER].contiguous().view(torch.int64)
    numbers, rows, sizes, counts, counted = header.unbind(dim=1)
    size = int(sizes[0])
    places = torch.arange(len(rows), device=rows.device)
    found = set(numbers.tolist())
    if len(found) > 1 or len(rows) != size or not torch.equal(rows, places):
        raise InputError(
            f"{len(rows)} rows of {len(found)} packed batch(es) reached the loss, not one batch of {size} rows in its "
            "order, so that masks would fall on other documents; pass training_arguments(shards) to the training "
            "arguments, and train in one process on one device"
        )
    masks = HEADER + (4 * size if counted[0] else 0)
    stands_for = labels[:, HEADER:masks].contiguous().view(torch.float32) if counted[0] else None
    bits = labels[:, masks:, None] >> torch.arange(8, dtype=torch.uint8, device=labels.device) & 1
    return Marks(bits.flatten(1)[:, :size].bool(), counts, stands_for)


ROW = "row"


def shard_dataset(
    shards: ShardSet, hard_negatives: int = 0, whole_domain: bool = False, *, metadata: bool = False
) -> Dataset:
    """Return all rows of all batches, with the columns query, document, negative_1 to ``hard_negatives``, and label.

    Texts are read from the shards when a batch is asked for. A row that has fewer hard negatives repeats its document
    instead, which the masked losses leave out. ``label`` holds what these losses need. With ``whole_domain`` they let a
    batch's documents stand for all of their domain. With ``metadata``, there are columns of the sources, too, to look
    at: trainers would take them for texts.
    """
    named = shards.metadata_names if metadata else []
    rows = Dataset(pa.table({ROW: np.arange(shards.manifest.rows)}))
    return rows.with_transform(ShardRows(shards, hard_negatives, whole_domain, named))


@dataclass(frozen=True)
class ShardRows:
    """Reads the columns of rows, given their numbers among the rows of all batches."""

    shards: ShardSet
    hard_negatives: int
    whole_domain: bool
    metadata: Sequence[str]

    def __call__(self, asked: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """Return the columns of the rows in ``asked["row"]``."""
        columns: dict[str, list[str | None]] = {}
        labels = []
        for batch, rows in self._by_batch(np.asarray(asked[ROW], dtype=np.int64)):
            whole = self.shards.batch(batch)
            found = whole.take(pa.array(rows))
            for name, texts in self._texts(found).items():
                columns.setdefault(name, []).extend(texts)
            counts = np.minimum(found["negatives"].value_lengths().to_numpy(), self.hard_negatives)
            masks = found["mask"].to_pylist()
            stands_for = self.shards.stands_for(batch, whole) if self.whole_domain else None
            labels.append(encode(batch, rows, self.shards.manifest.batch_size, counts, masks, stands_for))
        return {**columns, "label": torch.cat(labels)}

    def _by_batch(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield a batch's number and rows of it, in the order asked for."""
        batches, places = np.divmod(rows, self.shards.manifest.batch_size)
        changes = np.flatnonzero(np.diff(batches)) + 1
        for part in np.split(np.arange(len(rows)), changes):
            yield int(batches[part[0]]), places[part]

    def _texts(self, found: pa.RecordBatch) -> dict[str, list[str | None]]:
        queries, documents = found["query"].to_pylist(), found["document"].to_pylist()
        texts = {"query": queries, "document": documents}
        own = list(zip(found["negatives"].to_pylist(), documents, strict=True))
        for place in range(self.hard_negatives):
            texts[f"negative_{place + 1}"] = [some[place] if place < len(some) else text for some, text in own]
        return texts | (metadata_columns(found["metadata"], self.metadata) if self.metadata else {})


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
