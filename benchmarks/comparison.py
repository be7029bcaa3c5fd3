"""Measures methods that make batches, all in the same way."""

import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from batchwright.core.bar import bar
from batchwright.formats.negatives import Negatives
from batchwright.formats.positives import KnownPositives
from batchwright.formats.vectors import PairVectors
from benchmarks.methods import ALL, Batches
from stages.pack.masks import mask_of


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


def compare(data: str, opening: Open, jobs: Sequence[tuple[int, str]]) -> list[Row]:
    """One row per job, a batch size and a method; none if the data does not fill two batches.

    Every job runs in a separate process, so that its peak memory is its own.
    """
    work = [(data, opening, *job) for job in jobs]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        found = bar(pool.imap(measure, work, chunksize=1), desc=data, total=len(jobs), unit="run")
        return [row for row in found if row]


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
    found = []
    for rows in batches:
        scores = vectors.queries(rows) @ vectors.documents(rows).T
        sums = vectors.sums(rows)
        false = negatives.false(rows, scores, sums @ sums.T)
        mask = mask_of(false, known.among(negatives.query_class[rows], negatives.document_class[rows]))
        kept = others & ~mask
        unmasked = scores[kept].mean() if kept.any() else 0.0
        found.append((scores[others].mean(), unmasked, np.percentile(scores[others], 95), mask[others].mean()))
    means = np.mean(found, axis=0).round(4).tolist()
    return dict(zip(("hardness", "unmasked", "p95", "masked"), means, strict=True))


def show(rows: Sequence[Row]) -> None:
    """Print a table."""
    names = [field.name for field in fields(Row)]
    lines = [names, *([str(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    print("\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines))
    print(flush=True)
