"""What the filter masks in contextual batches of 128, by the margin that was its rule and by ``likeness: auto``.

``PAIRS`` is a folder of Parquet files with the columns query, document and group; all pairs of each are embedded,
unless ``--pairs`` says how many. ``masked`` and ``by_score`` are shares of the negatives, ``over_half`` that of rows
with more than half of them masked, ``over_half_known`` by known positives and duplicates alone. ``false`` is the share
of the negatives that answer the query by what is known of the set; ``precision`` and ``recall`` are those of all masks.
"""

import argparse
from pathlib import Path

from batchwright.core.command import keep_quiet, new_parser, run

EXAMPLE = "python -m experiments.masks.batches pairs --sets banking77 medquad --output experiments/masks/batches.tsv"


def main() -> str:
    """Write a row of figures per set and rule."""
    arguments = _parse()
    keep_quiet()
    from batchwright.core.files import write_tsv
    from experiments.masks.measure import Row
    from experiments.masks.packed import FILTERS, batches_of, describe
    from experiments.masks.read import find_sets
    from experiments.masks.view import View

    found = find_sets(arguments.pairs_folder, None)
    rows: list[Row] = []
    for name in arguments.sets:
        pairs = found[name]()
        pairs = pairs.sample(arguments.pairs or len(pairs.ids), ())
        view = View.of(pairs, arguments.vectors)
        batches = list(batches_of(view))
        rows += [describe(pairs, view, batches, name) for name in FILTERS]
        print(*rows[-len(FILTERS) :], sep="\n", flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)
    return f"{len(rows)} rows"


def _parse() -> argparse.Namespace:
    parser = new_parser("experiments.masks.batches", str(__doc__), EXAMPLE)
    parser.add_argument("pairs_folder", type=Path, metavar="PAIRS")
    parser.add_argument("--sets", nargs="+", metavar="SET", required=True)
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs per set, drawn by their ids; all by default")
    parser.add_argument("--vectors", type=Path, default=Path("vectors"), help="folder for the surrogate's vectors")
    parser.add_argument("--output", type=Path, metavar="TABLE")
    return parser.parse_args()


if __name__ == "__main__":
    run("masks", main)
