"""Batches of several methods compared by hardness and cost.

``python -m benchmarks.batches DATA... [--domains ...] [--methods ...] [--batch-sizes ...] [--output FILE]``

``DATA`` are folders like the ``data`` that ``dvc repro filter`` makes. Each of their domains is a data set. Prints one
table per data set.
"""

from dataclasses import asdict
from functools import partial
from pathlib import Path

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import domains, pair_parts
from batchwright.formats.provenance import Provenance
from batchwright.formats.vectors import PairVectors, VectorStore
from benchmarks.comparison import Row, compare, show
from benchmarks.methods import ALL, DEFAULT


def main() -> None:
    """Print the tables, and write them as one TSV file."""
    parser = new_parser("benchmarks.batches", str(__doc__), "python -m benchmarks.batches data --batch-sizes 64 128")
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
            found = compare(name, partial(open_domain, folder, name), jobs)
            show(found)
            rows += found
    if arguments.output:
        write_tsv(arguments.output, [asdict(row) for row in rows])


def open_domain(folder: Path, name: str) -> tuple[PairVectors, Negatives]:
    """The training pairs of a domain."""
    store = VectorStore.open(folder / "vectors" / Provenance.read(folder / "negatives", "filter").vectors)
    vectors = store.of(name).of_pairs(pair_parts(folder / "pairs", name, "train"))
    return vectors, Negatives.read(folder / "negatives", name, len(vectors))


if __name__ == "__main__":
    main()
