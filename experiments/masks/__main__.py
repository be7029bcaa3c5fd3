"""Check rules for false negatives, in a minute once the pairs are embedded; prints a line per set and rule.

``PAIRS`` is a folder of Parquet files with the columns query, document and group, ``BEIR`` one of BEIR folders. Truth
is what the rules do not see: the same intent (banking77), the same claim (perspectrum), the same abstract (scitldr,
from abstracts to summaries), judged documents (BEIR), and the cells of ``verdicts.tsv`` that were read by eye (squad,
medquad, nl2bash, tldr_pages, torch, perspectrum, finance_10k, fever, tatqa, policyqa).
"""

import argparse
from pathlib import Path

from batchwright.core.command import new_parser, run
from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from experiments.masks.cells import Surrogate, View
from experiments.masks.measure import Row, measure, read_verdicts
from experiments.masks.sets import find_sets
from experiments.rivals.sets import SURROGATES

EXAMPLE = "python -m experiments.masks pairs beir --output experiments/masks/rules.tsv"


def main() -> str:
    """Measure all rules on all sets."""
    arguments = _parse()
    sets = find_sets(arguments.pairs_folder, arguments.beir_folder)
    if unknown := sorted(set(arguments.sets or ()) - sets.keys()):
        raise InputError(f"--sets {' '.join(unknown)}: not among the sets, which are {', '.join(sets)}")
    verdicts = read_verdicts()
    rows: list[Row] = []
    for name in arguments.sets or sets:
        read = [each for each in verdicts if each.set == name]
        pairs = sets[name]().sample(arguments.pairs, {key for each in read for key in (each.pair, each.other)})
        view = View.of(pairs, arguments.vectors, arguments.surrogate)
        rows += (set_rows := measure(pairs, Surrogate(view), read))
        for row in set_rows:
            cells = (f"{key} {value:.3g}" if isinstance(value, float) else f"{value}" for key, value in row.items())
            print("  ".join(cells))
    if arguments.output:
        write_tsv(arguments.output, rows)
    return f"{len(rows)} rows"


def _parse() -> argparse.Namespace:
    parser = new_parser("experiments.masks", str(__doc__), EXAMPLE)
    parser.add_argument("pairs_folder", type=Path, metavar="PAIRS")
    parser.add_argument("beir_folder", type=Path, metavar="BEIR", nargs="?")
    parser.add_argument("--sets", nargs="+", metavar="SET")
    parser.add_argument("--pairs", type=int, default=1500, metavar="N", help="pairs per set, drawn by their ids")
    parser.add_argument("--surrogate", choices=SURROGATES, default="minilm")
    parser.add_argument("--vectors", type=Path, default=Path("vectors"), help="folder for the surrogate's vectors")
    parser.add_argument("--output", type=Path, metavar="TABLE")
    return parser.parse_args()


if __name__ == "__main__":
    run("masks", main)
