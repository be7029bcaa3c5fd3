"""Shards as a ``datasets.Dataset`` of rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from numpy.typing import NDArray

from batchwright.formats.shards import ShardSet
from batchwright.training.sentence_transformers.labels import encode

ROW = "row"


def shard_dataset(shards: ShardSet, hard_negatives: int = 0, whole_domain: bool = False) -> Dataset:
    """Return all rows of all batches, with the columns query, document, negative_1 to ``hard_negatives``, and label.

    Texts are read from the shards when a batch is asked for. A row that has fewer hard negatives repeats its document
    instead, which the masked losses leave out. ``label`` holds what these losses need. With ``whole_domain`` they let a
    batch's documents stand for all of their domain.
    """
    rows = Dataset(pa.table({ROW: np.arange(shards.manifest.rows)}))
    return rows.with_transform(ShardRows(shards, hard_negatives, whole_domain))


@dataclass(frozen=True)
class ShardRows:
    """Reads the columns of rows, given their numbers among the rows of all batches."""

    shards: ShardSet
    hard_negatives: int
    whole_domain: bool

    def __call__(self, asked: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """Return the columns of the rows in ``asked["row"]``."""
        columns: dict[str, list[str]] = {}
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

    def _texts(self, found: pa.RecordBatch) -> dict[str, list[str]]:
        queries, documents = found["query"].to_pylist(), found["document"].to_pylist()
        texts = {"query": queries, "document": documents}
        own = list(zip(found["negatives"].to_pylist(), documents, strict=True))
        for place in range(self.hard_negatives):
            texts[f"negative_{place + 1}"] = [some[place] if place < len(some) else text for some, text in own]
        return texts
