"""Pairs with the surrogate's vectors and the classes of duplicates."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.fingerprint import fingerprint
from batchwright.formats.vectors import PairVectors
from experiments.masks.sets import PairSet
from experiments.rivals.surrogate import surrogate_vectors
from stages.filter.alike import likeness_limit
from stages.filter.classes import duplicate_classes

NEAR_DUPLICATES = 0.9


@dataclass(frozen=True, kw_only=True)
class View:
    """N pairs as the filter sees them; both classes are ``(N,)``."""

    vectors: PairVectors
    query_class: NDArray[np.int32]
    document_class: NDArray[np.int32]

    @classmethod
    def of(cls, pairs: PairSet, folder: Path) -> "View":
        """Embed a set, or read the vectors of the same pairs from ``folder``."""
        sides = {"query": [pair.query for pair in pairs.pairs], "document": [pair.document for pair in pairs.pairs]}
        found = surrogate_vectors(folder / f"{pairs.name}-{fingerprint(pairs.ids)}.npz", pa.table(sides))
        return cls(
            vectors=PairVectors(
                vectors=np.concatenate([found.queries, found.documents]),
                rows=np.arange(2 * len(pairs.ids)).reshape(2, -1),
            ),
            query_class=duplicate_classes([sides["query"]], NEAR_DUPLICATES),
            document_class=duplicate_classes([sides["document"]], NEAR_DUPLICATES),
        )

    def limit(self) -> np.float32:
        """What ``likeness: auto`` finds."""
        return likeness_limit(self.vectors, self.query_class, self.document_class, np.random.default_rng(0))
