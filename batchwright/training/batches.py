"""Reads training batches for one rank: the texts of its own rows, and the masks and counts of all rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch.utils.data import Dataset

from batchwright.core.arguments import check_count
from batchwright.core.errors import InputError
from batchwright.formats.models import Prefixes, Side
from batchwright.formats.shards import ShardSet, read_scores, unpack_mask


@dataclass(frozen=True, kw_only=True)
class TrainBatch:
    """A training batch as one rank reads it.

    ``queries``, ``documents`` and ``negatives`` are the prefixed texts of the rank's own ``rows``; ``negatives`` lists
    their hard negatives row after row. ``masked`` and ``negative_counts`` cover the whole batch on every rank:
    ``masked`` ``(B, B)`` bool excludes document ``j`` from query ``i``'s negatives, ``negative_counts`` ``(B,)`` int64
    is the number of hard negatives of each row. ``index`` is the batch's number among all packed batches.
    ``stands_for`` ``(B, B)`` float32 is how many of the domain's documents document ``j`` stands for as a negative of
    query ``i``; None: each for itself. ``taught`` ``(B, 1 + K)`` float32 are a teacher's scores of all rows' documents
    and hard negatives, NaN where it has none; None: nobody asked. ``weights`` ``(B,)`` float32 multiply the rows' terms
    in the loss; None: all are 1.
    """

    index: int
    rows: slice
    queries: list[str]
    documents: list[str]
    negatives: list[str]
    negative_counts: NDArray[np.int64]
    masked: NDArray[np.bool_]
    stands_for: NDArray[np.float32] | None
    taught: NDArray[np.float32] | None = None
    weights: NDArray[np.float32] | None = None

    @property
    def size(self) -> int:
        """B, the number of rows in the whole batch."""
        return len(self.masked)


@dataclass(frozen=True)
class BatchReader:
    """Reads training batches from memory-mapped shards, with at most ``hard_negatives`` hard negatives per row.

    With ``whole_domain``, a batch's documents stand for all of their domain, otherwise for themselves. Without
    ``in_batch``, all of them are masked: a query is compared with its own hard negatives alone. With ``taught``,
    batches have a teacher's scores.
    """

    shards: ShardSet
    prefixes: Prefixes
    hard_negatives: int
    whole_domain: bool = False
    in_batch: bool = True
    taught: bool = False

    def read(self, index: int, rows: slice) -> TrainBatch:
        """Read training batch ``index`` for the rank that holds ``rows``.

        Raises:
            InputError: the shards are damaged.
        """
        batch = self.shards.batch(index)
        try:
            return self._convert(batch, index, rows)
        except ValueError as error:  # Arrow's errors are ValueErrors too
            raise InputError(
                f"{self.shards.folder}: batch {index} is damaged ({error}); run the stage 'pack' again"
            ) from None

    def _convert(self, batch: pa.RecordBatch, index: int, rows: slice) -> TrainBatch:
        size = self.shards.manifest.batch_size
        if batch.num_rows != size:
            raise ValueError(f"{batch.num_rows} rows, the manifest says {size}")
        own = batch.take(np.arange(size)[rows])
        domains = own["domain"].to_pylist()
        negatives = [texts[: self.hard_negatives] for texts in own["negatives"].to_pylist()]
        owners = [domain for domain, texts in zip(domains, negatives, strict=True) for _ in texts]
        return TrainBatch(
            index=index,
            rows=rows,
            queries=self._prefixed(domains, own["query"].to_pylist(), "query"),
            documents=self._prefixed(domains, own["document"].to_pylist(), "document"),
            negatives=self._prefixed(owners, [text for texts in negatives for text in texts], "document"),
            negative_counts=np.minimum(batch["negatives"].value_lengths().to_numpy(), self.hard_negatives),
            masked=unpack_mask(batch["mask"].to_pylist(), size) | (not self.in_batch),
            stands_for=self.shards.stands_for(index, batch) if self.whole_domain else None,
            taught=read_scores(batch, self.hard_negatives) if self.taught else None,
            weights=self._weights(batch),
        )

    def _weights(self, batch: pa.RecordBatch) -> NDArray[np.float32] | None:
        weights = np.array(batch["weight"] if self.shards.annotated else [], np.float32)
        return weights if (weights != 1).any() else None

    def _prefixed(self, domains: list[str], texts: list[str], side: Side) -> list[str]:
        return [self.prefixes.of(domain, side) + text for domain, text in zip(domains, texts, strict=True)]


class ShardBatches(Dataset[TrainBatch]):
    """The training batches of some packed epochs in their order; one item is one whole batch.

    ``epochs`` count from 0; without them, all. Load it with ``DataLoader(dataset, batch_size=None)``, and leave
    ``shuffle`` off: the order of the batches is part of what was packed. ``hard_negatives``, ``prefixes``,
    ``whole_domain``, ``in_batch`` and ``taught`` as in ``BatchReader``.

    Raises:
        InputError: there is no such epoch, ``hard_negatives`` is no number of them, or there are no scores that taught.
    """

    def __init__(
        self,
        shards: ShardSet,
        epochs: Sequence[int] | None = None,
        hard_negatives: int = 0,
        prefixes: Prefixes | None = None,
        whole_domain: bool = False,
        in_batch: bool = True,
        taught: bool = False,
    ) -> None:
        check_count("hard_negatives", hard_negatives, 0)
        if taught and not shards.scored:
            raise InputError(f"{shards.folder}: has no teacher's scores; run the stage 'teach', or leave out taught")
        chosen = range(len(shards.manifest.epochs)) if epochs is None else epochs
        self._numbers = [number for epoch in chosen for number in shards.manifest.batches_of(epoch)]
        self._reader = BatchReader(shards, prefixes or Prefixes(), hard_negatives, whole_domain, in_batch, taught)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._numbers)

    def __getitem__(self, place: int) -> TrainBatch:
        """Read a batch from its shard."""
        return self._reader.read(self._numbers[place], slice(None))
