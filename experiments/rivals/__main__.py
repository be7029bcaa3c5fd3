"""Train one model per arm and seed on the same pairs for the same number of steps; write curves and scores.

``DATA`` are Parquet files of pairs with the columns query, document, domain and, where pairs belong together, group,
such as those in ``data/pairs``. Each is a set of its own, or all are one with ``--together NAME``. Curves go to
``OUTPUT/curves.tsv``, costs and hardness to ``OUTPUT/costs.tsv`` and the scores of each held-out query after the last
step to ``OUTPUT/SET.npz``. Runs that are there already are not done again.
"""

import argparse

from batchwright.core.command import run
from experiments.rivals.arms import ARMS
from experiments.rivals.compare import compare
from experiments.rivals.runs import Runs
from experiments.rivals.sets import pairs_parser, read_set

EXAMPLE = "python -m experiments.rivals pairs/medquad.parquet --arms random ours --output experiments/rivals/static"


def main() -> str:
    """Run all arms on all sets."""
    arguments = _parse()
    together = arguments.together
    groups = {together: arguments.data} if together else {file.stem: [file] for file in arguments.data}
    runs = Runs.open(arguments.output)
    for name, files in groups.items():
        pairs = read_set(name, files, arguments.vectors, arguments.limit)
        compare(pairs, runs, arguments.arms or list(ARMS), arguments.kind, arguments.epochs, arguments.seeds)
    return f"{len(runs.costs)} runs in {arguments.output}"


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals", str(__doc__), EXAMPLE)
    parser.add_argument("--together", metavar="NAME")
    parser.add_argument("--arms", nargs="+", metavar="ARM")
    parser.add_argument("--kind", choices=("static", "transformer", "minilm"), default="static")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=int, metavar="PAIRS")
    return parser.parse_args()


if __name__ == "__main__":
    run("rivals", main)
