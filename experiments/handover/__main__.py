"""Is a model that sentence-transformers' trainer makes of our shards as good as one of our own trainer?

``python -m experiments.handover DATA --domains ... [--share S] [--seeds N] [--epochs N]
[--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. The same small static model is trained from
scratch on the same shards, first random batches, then hard ones, and documents stand for the whole domain. A seed
changes the batches and the weights; differences to our trainer are paired by query and seed.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.common.arguments import training_parser
from experiments.common.small_models import BASE, save_start_model, stretch
from experiments.common.workspace import START, Row, Workspace
from experiments.handover.trainings import TRAININGS
from stages.scoring.measures import score_queries
from stages.scoring.paired import by_query, difference, estimate
from stages.scoring.retrieval import model_system

SCHEDULE = [0.0, 0.5]


def main() -> str:
    """Train, compare, print one line per trainer."""
    arguments = _parse()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in TRAININGS}
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), arguments.data, arguments.domains, arguments.share)
        for seed in range(arguments.seeds):
            _pack(workspace, seed, arguments)
            for name, train in TRAININGS.items():
                scores = _score(workspace, train(workspace, seed))
                found[name].append(scores)
                print(f"{name}, seed {seed}: nDCG@10 {statistics.mean(scores.values()):.4f}", flush=True)
    tables = {name: by_query(scores) for name, scores in found.items()}
    rows = [_row(name, table, tables["Batchwright"]) for name, table in tables.items()]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)
    return f"{len(rows) * arguments.seeds} trainings"


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.handover", str(__doc__), "python -m experiments.handover data --domains medquad"
    )
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--vectors", default="tfidf")
    parser.add_argument("--epochs", type=int, default=2)
    return parser.parse_args()


def _pack(workspace: Workspace, seed: int, arguments: argparse.Namespace) -> None:
    """Write the start model and the shards of a seed."""
    save_start_model(workspace.folder / START, "static", seed)
    changes = {f"{stage}.vectors": arguments.vectors for stage in ("cluster", "filter")}
    changes |= {"filter.margin": None, "filter.likeness": "auto", "base.seed": seed}
    changes |= {"cluster.cluster_size": round(SCHEDULE[1] * BASE["pack"]["batch_size"])}
    changes |= {"pack.epochs": arguments.epochs, "pack.cluster_share": stretch(SCHEDULE, arguments.epochs)}
    workspace.set_params(BASE, changes)
    workspace.filter()
    for stage in ("cluster", "pack contextual"):
        workspace.run(stage)


def _score(workspace: Workspace, model: Path) -> dict[str, float]:
    """nDCG@10 of each held-out query."""
    home = workspace.collections["home"]
    return {query: measures["ndcg@10"] for query, measures in score_queries(home, model_system(model)(home)).items()}


def _row(name: str, table: NDArray[np.float64], reference: NDArray[np.float64]) -> Row:
    found = difference(table, reference)
    row: Row = {"trainer": name, "nDCG@10": round(estimate(table).mean, 6)}
    row |= {"difference": round(found.mean, 6), "error": round(found.error, 6)}
    return row | {"seeds": len(table), "queries": table.shape[1]}


if __name__ == "__main__":
    run("handover", main)
