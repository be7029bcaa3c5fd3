"""The rows of shards as a dataset, and the sampler that puts them together as they were packed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.util.distributed import get_world_size

from batchwright.core.arguments import check_count
from batchwright.core.errors import InputError
from batchwright.formats.metadata import metadata_columns
from batchwright.formats.shards import ShardSet, read_scores
from batchwright.training.sentence_transformers.labels import encode

ROW = "row"


def shard_dataset(
    shards: ShardSet,
    hard_negatives: int = 0,
    whole_domain: bool = False,
    scores: bool = False,
    *,
    metadata: bool = False,
) -> Dataset:
    """Return all rows of all batches, with the columns query, document, negative_1 to ``hard_negatives``, and label.

    Texts are read from the shards when a batch is asked for. A row that has fewer hard negatives repeats its document
    instead, which the masked losses leave out. ``label`` holds what these losses need, a teacher's scores included.
    With ``whole_domain`` they let a batch's documents stand for all of their domain.

    With ``scores``, ``label`` is for the losses that sentence-transformers distils with (MarginMSELoss,
    DistillKLDivLoss): a teacher's scores of the row's document and hard negatives, ``(1 + hard_negatives,)`` float32.
    A repeated document has its own score again, so that it teaches no margin. With ``metadata``, there are columns of
    the sources, too, to look at: trainers would take them for texts.

    Raises:
        InputError: ``hard_negatives`` is no number of them, or no row has any, or with ``scores``, a row lacks one.
    """
    check_count("hard_negatives", hard_negatives, 0)
    if hard_negatives and not any(batch[0].value_lengths().to_numpy().any() for batch in shards.columns("negatives")):
        raise InputError(
            f"{shards.folder}: hard_negatives is {hard_negatives}, and no pair has any; set it to 0, or pack pairs "
            "with hard negatives, which sources or the stage 'mine' give"
        )
    if scores:
        check_scores(shards, hard_negatives, whole_domain)
    rows = Dataset(pa.table({ROW: np.arange(shards.manifest.rows)}))
    return rows.with_transform(
        ShardRows(shards, hard_negatives, whole_domain, scores, shards.metadata_names if metadata else [])
    )


def check_scores(shards: ShardSet, hard_negatives: int, whole_domain: bool) -> None:
    """Check that every row has a teacher's scores of its document and of so many hard negatives.

    Raises:
        InputError: it has not, or they are asked for together with what only masked losses use.
    """
    if not shards.scored:
        raise InputError(f"{shards.folder}: has no teacher's scores; run the stage 'teach', or leave out scores")
    if not hard_negatives or whole_domain:
        raise InputError("scores go with hard_negatives of 1 or more, and not with whole_domain")
    for number, batch in enumerate(shards.columns("negatives", "scores")):
        missing = np.isnan(_filled(batch, hard_negatives)).any(axis=1)
        if missing.any():
            raise InputError(
                f"{shards.folder}: batch {number}, row {missing.argmax()} lacks a teacher's score; run the stage "
                "'teach', or train with a masked loss and distill, which leaves out what has none"
            )


def _filled(batch: pa.RecordBatch, hard_negatives: int) -> NDArray[np.float32]:
    """A teacher's scores ``(B, 1 + K)``, with those of the documents that stand where a row has no hard negative."""
    found = _scores(batch, hard_negatives)
    absent = np.arange(found.shape[1]) > batch["negatives"].value_lengths().to_numpy()[:, None]
    return np.where(absent, found[:, :1], found)


def _scores(batch: pa.RecordBatch, hard_negatives: int) -> NDArray[np.float32]:
    """A teacher's scores ``(B, 1 + K)``, NaN where it has none, or a row no hard negative."""
    found = read_scores(batch, hard_negatives)
    return np.pad(found, ((0, 0), (0, 1 + hard_negatives - found.shape[1])), constant_values=np.nan)


@dataclass(frozen=True)
class ShardRows:
    """Reads the columns of rows, given their numbers among the rows of all batches."""

    shards: ShardSet
    hard_negatives: int
    whole_domain: bool
    scores: bool
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
            labels.append(
                torch.from_numpy(_filled(found, self.hard_negatives))
                if self.scores
                else self._marks(batch, rows, whole, found)
            )
        return {**columns, "label": torch.cat(labels)}

    def _marks(self, batch: int, rows: NDArray[np.int64], whole: pa.RecordBatch, found: pa.RecordBatch) -> torch.Tensor:
        return encode(
            batch,
            rows,
            self.shards.manifest.batch_size,
            np.minimum(found["negatives"].value_lengths().to_numpy(), self.hard_negatives),
            found["mask"].to_pylist(),
            self.shards.stands_for(batch, whole)[rows] if self.whole_domain else None,
            _scores(found, self.hard_negatives) if self.shards.scored else None,
            np.array(found["weight"], np.float32)[:, None] if self.shards.annotated else None,
        )

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

    Epochs before ``skip_epochs`` are left out. Of several processes, each takes its part of every batch.
    """
    shards.manifest.batches_of(skip_epochs)  # refuses an epoch that was not packed
    return {
        "accelerator_config": {"split_batches": True},
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
        processes = get_world_size()
        if manifest.batch_size % processes:
            raise InputError(
                f"batches of {manifest.batch_size} rows cannot be divided evenly among {processes} processes; train "
                "in as many as divide it, or pack other batches (pack.batch_size)"
            )
        if self.batch_size != manifest.batch_size:
            raise InputError(
                f"the trainer's batches have {self.batch_size} rows, the packed ones {manifest.batch_size}; set "
                f"per_device_train_batch_size={manifest.batch_size}, and start a process for each GPU (torchrun)"
            )
        if rows != manifest.rows:
            raise InputError(
                f"the dataset has {rows:,} rows, the shards {manifest.rows:,}; pass shard_dataset(shards), unfiltered"
            )
        counts = {epoch.batches for epoch in manifest.epochs[self._skipped :]}
        if len(counts) > 1:  # the trainer counts its steps by the first one
            raise InputError(f"the packed epochs have different numbers of batches, {sorted(counts)}; pack them alike")
