"""Batches of several methods compared by hardness and cost.

``python -m experiments.batches DATA... [--domains ...] [--methods ...] [--batch-sizes ...] [--output FILE]``

``DATA`` are folders like the ``data`` that ``dvc repro filter`` makes. Each of their domains is a data set. Prints one
table per data set. Every method runs in a separate process, so that its peak memory is its own.
"""

import multiprocessing
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.core.terminal import bar
from batchwright.formats.pairs import domains
from experiments.batches.measure import Open, Row, measure, open_domain
from experiments.batches.methods import ALL, DEFAULT


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


def _compare(data: str, opening: Open, jobs: Sequence[tuple[int, str]]) -> list[Row]:
    """One row per job, a batch size and a method; none if the data does not fill two batches."""
    # A function of this module could not be sent: a spawned process does not import __main__ of a package.
    work = [(data, opening, *job) for job in jobs]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        rows = bar(pool.imap(measure, work, chunksize=1), desc=data, total=len(jobs), unit="run")
        return [row for row in rows if row]


def _show(rows: Sequence[Row]) -> None:
    """Print a table."""
    names = [field.name for field in fields(Row)]
    lines = [names, *([str(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    print("\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines))
    print(flush=True)


if __name__ == "__main__":
    main()
