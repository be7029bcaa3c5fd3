"""What a domain's hard negatives are mined from: the documents of its training pairs, and of its corpus."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.by_domain.spread import Map
from batchwright.core.paths import CORPUS, PAIRS
from batchwright.core.spill import spilled_texts
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import PairsPart, Texts, pair_parts, pairs_file
from stages.negatives.duplicates import duplicate_classes


def document_parts(domain: str) -> list[PairsPart]:
    """Return the parts of a domain's training pairs, then those of its corpus, if it has one."""
    corpus = pair_parts(CORPUS, domain, "train") if pairs_file(CORPUS, domain).exists() else []
    return [*pair_parts(PAIRS, domain, "train"), *corpus]


def read_documents(domain: str) -> pa.LargeStringArray:
    """Read the documents of ``document_parts``, in the same order, memory-mapped."""
    return spilled_texts(_documents(document_parts(domain)))


def _documents(parts: Sequence[PairsPart]) -> Iterator[pa.Array]:
    return (batch["document"] for part in parts for batch in part.read(["document"]))


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known about the documents of N pairs and M more.

    ``classes`` ``(N + M,)`` int32: duplicates have the same class. ``negatives`` has these classes, too.
    """

    classes: NDArray[np.int32]
    negatives: Negatives

    @property
    def different(self) -> NDArray[np.int64]:
        """The first document of each class, ``(D,)``, ascending: those of pairs come first."""
        return np.sort(np.unique(self.classes, return_index=True)[1])


def know(domain: str, negatives: Negatives, near_duplicates: float, do_parts: Map = map) -> Known:
    """Find duplicates in the corpus, as the filter does in the pairs, of which its ``negatives`` tell."""
    if not pairs_file(CORPUS, domain).exists():
        return Known(classes=negatives.document_class, negatives=negatives)
    parts = (Texts(part, "document") for part in document_parts(domain))
    return joined(duplicate_classes(parts, near_duplicates, do_parts), negatives)


def joined(classes: NDArray[np.int32], negatives: Negatives) -> Known:
    """Join ``classes`` ``(N + M,)``, so that duplicates among the pairs remain so: more texts may divide near ones."""
    before = negatives.document_class
    count, of_pairs = int(classes.max(initial=-1)) + 1, int(before.max(initial=-1)) + 1
    edges = coo_matrix((np.ones(len(before), bool), (classes[: len(before)], before + count)), [count + of_pairs] * 2)
    label: NDArray[np.int32] = connected_components(edges, directed=False)[1].astype(np.int32)
    asked, documents = negatives.judged.T
    judged = np.stack([asked, label[documents + count]], axis=1)
    return Known(
        classes=label[classes], negatives=replace(negatives, document_class=label[before + count], judged=judged)
    )
