"""Train each arm at its own best temperature and learning rate, for the same number of steps, and score it.

``DATA`` are Parquet files of pairs with the columns query, document, domain and, where pairs belong together, group,
such as those in ``data/pairs``. Each is a set of its own, or all are one with ``--together NAME``. A third of the
held-out queries chooses an arm's settings with one seed; then other seeds train, and the other queries are scored.
Runs are kept in the folder ``OUTPUT``, and those that are there already are not done again.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context

from batchwright.core.command import run
from experiments.rivals.arms import ARMS
from experiments.rivals.compare import compare_files, embed_files
from experiments.rivals.runs import Runs
from experiments.rivals.sets import BATCH, pairs_parser

EXAMPLE = "python -m experiments.rivals pairs/medquad.parquet --arms random ours --output experiments/rivals/static"


def main() -> str:
    """Run all arms on all sets."""
    arguments = _parse()
    together = arguments.together
    groups = {together: arguments.data} if together else {file.stem: [file] for file in arguments.data}
    jobs = list(product(groups.items(), arguments.arms or ARMS))
    work = partial(compare_files, arguments)
    if arguments.processes == 1:
        list(map(work, jobs))
    else:
        threads = str(max(1, (os.cpu_count() or 1) // arguments.processes))
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = threads  # before processes import anything
        with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
            list(pool.map(partial(embed_files, arguments), groups.items()))  # or each arm would embed the set
            list(pool.map(work, jobs))
    return f"{len(list(Runs(arguments.output)))} runs in {arguments.output}"


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals", str(__doc__), EXAMPLE, searches=True)
    parser.add_argument("--together", metavar="NAME")
    parser.add_argument("--arms", nargs="+", metavar="ARM", choices=ARMS)
    parser.add_argument("--kind", choices=("static", "transformer", "minilm"), default="static")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--settings", type=float, nargs=2, metavar=("TEMPERATURE", "RATE"), help="in place of the best on dev queries"
    )
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--limit", type=int, metavar="PAIRS")
    parser.add_argument("--batch", type=int, default=BATCH, metavar="PAIRS", help="pairs of a batch")
    parser.add_argument("--unasked", type=float, default=0, metavar="SHARE", help="pairs of which only documents stay")
    parser.add_argument("--by-group", action="store_true", help="all documents of a query's group answer it")
    return parser.parse_args()


if __name__ == "__main__":
    run("rivals", main)
