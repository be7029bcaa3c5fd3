"""One domain as packing reads it: its training pairs, their vectors and what masks need."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from formats.masks import pack_mask
from formats.negatives import Negatives
from formats.shards import SHARD
from formats.vectors import DomainVectors
from stages.pack.hardness import Hardness, measure
from stages.pack.masks import KnownPositives, false_negatives


@dataclass(frozen=True, kw_only=True)
class Domain:
    """``vectors`` are those that the clusters were made from, ``surrogate`` those that judge negatives."""

    pairs: pa.Table
    negatives: Negatives
    known: KnownPositives
    vectors: DomainVectors
    surrogate: DomainVectors

    def batch(self, rows: NDArray[np.int64]) -> tuple[pa.RecordBatch, Hardness]:
        """The training batch of ``rows`` ``(B,)``, with its mask, and its hardness."""
        table = self.pairs.take(rows)
        texts = table["query"].to_pylist(), table["document"].to_pylist()
        mask = self._mask(rows, *texts)
        columns = [table[name].combine_chunks() for name in SHARD.names if name != "mask"]
        record_batch = pa.record_batch([*columns, pa.array(pack_mask(mask))], schema=SHARD)
        return record_batch, measure(_similarities(self.vectors, *texts), mask)

    def _mask(self, rows: NDArray[np.int64], queries: list[str], documents: list[str]) -> NDArray[np.bool_]:
        known = self.known.among(self.negatives.query_class[rows], self.negatives.document_class[rows])
        scores = _similarities(self.surrogate, queries, documents)
        return false_negatives(scores, self.negatives.thresholds[rows], known)


def _similarities(vectors: DomainVectors, queries: list[str], documents: list[str]) -> NDArray[np.float32]:
    similarities: NDArray[np.float32] = vectors.of("query", queries) @ vectors.of("document", documents).T
    return similarities
