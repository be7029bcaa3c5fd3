"""One method on one data set: the hardness of its batches, and what they cost."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from batchwright.formats.negatives import KnownPositives, Negatives
from batchwright.formats.pairs import pair_parts
from batchwright.formats.vectors import PairVectors, Provenance, VectorStore
from experiments.batches.methods import ALL, Batches
from stages.pack.domain import mask_of


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on one data set. ``p95`` is the 95th percentile of all negatives' similarities."""

    data: str
    batch: int
    method: str
    batches: int
    hardness: float
    unmasked: float
    p95: float
    masked: float
    largest: int
    smallest: int
    seconds: float
    mib: int


Open = Callable[[], tuple[PairVectors, Negatives]]
"""Opens a data set; must be picklable, since another process calls it."""


def open_domain(folder: Path, name: str) -> tuple[PairVectors, Negatives]:
    """The training pairs of a domain."""
    store = VectorStore.open(folder / "vectors" / Provenance.read(folder / "negatives", "filter").vectors)
    vectors = store.of(name).of_pairs(pair_parts(folder / "pairs", name, "train"))
    return vectors, Negatives.read(folder / "negatives", name, len(vectors))


def measure(job: tuple[str, Open, int, str]) -> Row | None:
    """Run one method and measure its batches; None if the data does not fill two."""
    data, opening, batch, method = job
    vectors, negatives = opening()
    if len(vectors) < 2 * batch:
        return None
    start = time.perf_counter()
    batches, sizes = ALL[method](vectors, batch)
    seconds = time.perf_counter() - start
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Row(
        data=data,
        batch=batch,
        method=method,
        batches=len(batches),
        largest=int(sizes.max(initial=0)),
        smallest=int(sizes.min()) if len(sizes) else 0,
        seconds=round(seconds, 2),
        mib=mib,
        **_quality(vectors, negatives, batches),
    )


def _quality(vectors: PairVectors, negatives: Negatives, batches: Batches) -> dict[str, float]:
    known = KnownPositives(negatives)
    others = ~np.eye(batches.shape[1], dtype=bool)
    measures = []
    for rows in batches:
        scores = vectors.queries(rows) @ vectors.documents(rows).T
        sums = vectors.sums(rows)
        false = negatives.false(rows, scores, sums @ sums.T)
        mask = mask_of(false, known.among(negatives.query_class[rows], negatives.document_class[rows]))
        kept = others & ~mask
        unmasked = scores[kept].mean() if kept.any() else 0.0
        measures.append((scores[others].mean(), unmasked, np.percentile(scores[others], 95), mask[others].mean()))
    means = np.mean(measures, axis=0).round(4).tolist()
    return dict(zip(("hardness", "unmasked", "p95", "masked"), means, strict=True))
