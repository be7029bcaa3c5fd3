"""Batches of several methods compared by hardness and cost.

``python -m experiments.batches DATA... [--domains ...] [--methods ...] [--batch-sizes ...] [--output FILE]``

``DATA`` are folders like the ``data`` that ``dvc repro filter`` makes. Each of their domains is a data set. Prints one
table per data set. Every method runs in a separate process, so that its peak memory is its own.
"""

import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.core.terminal import bar
from batchwright.formats.negatives import KnownPositives, Negatives
from batchwright.formats.pairs import domains, pair_parts
from batchwright.formats.vectors import PairVectors, Provenance, VectorStore
from experiments.batches.methods import ALL, DEFAULT, Batches
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


def main() -> None:
    """Print the tables, and write them as one TSV file."""
    parser = new_parser("experiments.batches", str(__doc__), "python -m experiments.batches data --batch-sizes 64 128")
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--domains", nargs="+", help="only these domains of the data")
    parser.add_argument("--methods", nargs="+", choices=sorted(ALL), default=DEFAULT)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[64, 128, 512])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    sets = [(folder, name) for folder in arguments.data for name in domains(folder / "pairs")]
    known = {name for _, name in sets}
    if unknown := set(arguments.domains or []) - known:
        named, there = (", ".join(sorted(names)) for names in (unknown, known))
        parser.error(f"argument --domains: not in the data: {named} (there are: {there})")
    jobs = [(batch, method) for batch in arguments.batch_sizes for method in arguments.methods]
    rows: list[Row] = []
    for folder, name in sets:
        if name in (arguments.domains or [name]):
            set_rows = _compare(name, partial(open_domain, folder, name), jobs)
            _show(set_rows)
            rows += set_rows
    if arguments.output:
        write_tsv(arguments.output, [asdict(row) for row in rows])


def open_domain(folder: Path, name: str) -> tuple[PairVectors, Negatives]:
    """The training pairs of a domain."""
    store = VectorStore.open(folder / "vectors" / Provenance.read(folder / "negatives", "filter").vectors)
    vectors = store.of(name).of_pairs(pair_parts(folder / "pairs", name, "train"))
    return vectors, Negatives.read(folder / "negatives", name, len(vectors))


def _compare(data: str, opening: Open, jobs: Sequence[tuple[int, str]]) -> list[Row]:
    """One row per job, a batch size and a method; none if the data does not fill two batches."""
    work = [(data, opening, *job) for job in jobs]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        rows = bar(pool.imap(measure, work, chunksize=1), desc=data, total=len(jobs), unit="run")
        return [row for row in rows if row]


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


def _show(rows: Sequence[Row]) -> None:
    """Print a table."""
    names = [field.name for field in fields(Row)]
    lines = [names, *([str(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    print("\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines))
    print(flush=True)


if __name__ == "__main__":
    main()
