"""Batches of several methods compared: hardness, and what it costs.

``python -m benchmarks.batches DATA... [--methods ...] [--batch-sizes ...] [--output FILE]``

``DATA`` are folders as ``dvc repro filter`` leaves them in ``data``; each of their domains is a data set. Every
method runs in a process of its own, so that its peak memory is its own, too. Prints a table a data set.
"""

import stages  # noqa: F401, I001  (keeps libraries quiet)

import argparse
import multiprocessing
import resource
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.methods import Batches, Batching, clustered, faiss_balanced, gcbs, random, reference
from formats.negatives import Negatives
from formats.pairs import domains, read_pairs
from formats.positives import KnownPositives
from formats.results import write_tsv
from formats.source import Source
from formats.vectors import PairVectors, VectorStore
from stages.cluster.methods import METHODS
from stages.pack.masks import false_negatives

ALL: dict[str, Batching] = {
    "random": random,
    "reference": reference,
    "faiss_balanced": faiss_balanced,
    "gcbs": gcbs,
    **{name: partial(clustered, name) for name in METHODS},
}
DEFAULT = ("random", "reference", "faiss_balanced", "gcbs", "balanced")


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


def main() -> None:
    """Print the tables, and write them as one TSV file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches")
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--domains", nargs="+", help="some of the data's domains only")
    parser.add_argument("--methods", nargs="+", choices=sorted(ALL), default=DEFAULT)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[64, 128, 512])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    sets = [(folder, name) for folder in arguments.data for name in domains(folder / "pairs")]
    known = {name for _, name in sets}
    if unknown := set(arguments.domains or []) - known:
        named, there = (", ".join(sorted(names)) for names in (unknown, known))
        parser.error(f"argument --domains: not in the data: {named} (there are: {there})")
    chosen = [(folder, name) for folder, name in sets if name in (arguments.domains or [name])]
    rows = []
    for folder, name in chosen:
        jobs = [(folder, name, batch, method) for batch in arguments.batch_sizes for method in arguments.methods]
        # A process a job: ``maxtasksperchild`` keeps the peak memory of one from being that of the next.
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            found = tqdm(pool.imap(_measure, jobs, chunksize=1), desc=name, total=len(jobs), unit="run", leave=False)
            rows += _show([row for row in found if row])
    if arguments.output:
        write_tsv(arguments.output, [asdict(row) for row in rows])


def _measure(job: tuple[Path, str, int, str]) -> Row | None:
    folder, name, batch, method = job
    vectors, negatives = _open(folder, name)
    if len(vectors) < 2 * batch:
        return None
    start = time.perf_counter()
    batches, sizes = ALL[method](vectors, batch)
    seconds = time.perf_counter() - start
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Row(
        data=name,
        batch=batch,
        method=method,
        batches=len(batches),
        largest=int(sizes.max(initial=0)),
        smallest=int(sizes.min()) if len(sizes) else 0,
        seconds=round(seconds, 2),
        mib=mib,
        **_quality(vectors, negatives, batches),
    )


def _open(folder: Path, name: str) -> tuple[PairVectors, Negatives]:
    pairs = read_pairs(folder / "pairs", name, "train")
    store = VectorStore.open(folder / "vectors" / Source.read(folder / "negatives", "filter").vectors)
    return store.of(name).of_pairs(pairs), Negatives.read(folder / "negatives", name, len(pairs))


def _quality(vectors: PairVectors, negatives: Negatives, batches: Batches) -> dict[str, float]:
    known = KnownPositives(negatives)
    others = ~np.eye(batches.shape[1], dtype=bool)
    found = []
    for rows in batches:
        scores = vectors.queries(rows) @ vectors.documents(rows).T
        mask = false_negatives(
            scores,
            negatives.thresholds[rows],
            known.among(negatives.query_class[rows], negatives.document_class[rows]),
        )
        kept = others & ~mask
        unmasked = scores[kept].mean() if kept.any() else 0.0
        found.append((scores[others].mean(), unmasked, np.percentile(scores[others], 95), mask[others].mean()))
    means = np.mean(found, axis=0).round(4).tolist()
    return dict(zip(("hardness", "unmasked", "p95", "masked"), means, strict=True))


def _show(rows: Sequence[Row]) -> list[Row]:
    names = [field.name for field in fields(Row)]
    lines = [names, *([str(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    print("\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines))
    print(flush=True)
    return list(rows)


if __name__ == "__main__":
    main()
