"""Table 1 of *Contextual Document Embeddings* in the small: biencoder and CDE, random and contextual batches.

``python -m benchmarks.table1 DATA --domains ... [--start MODEL] [--documents J] [--seeds N] [--epochs N] [--steps N]
[--output FILE]``

``DATA`` is a folder as ``dvc repro embed`` leaves it in ``data``. All four train on the same pairs for as many steps;
``home`` are the held-out queries of ``--domains``, ``elsewhere`` those of all other domains. Without ``--start`` they
begin as a small encoder with random weights.
"""

import stages  # noqa: F401, I001  (keeps libraries quiet)

import argparse
import tempfile
from pathlib import Path

from benchmarks.small import BASE, ndcg, save_start_model
from benchmarks.workspace import Row, Workspace, summary
from formats.results import read_json, write_tsv

PAPER = {
    ("biencoder", "random"): 59.9,
    ("biencoder", "contextual"): 61.7,
    ("cde", "random"): 62.4,
    ("cde", "contextual"): 63.1,
}
"""nDCG@10 on truncated BEIR, in the paper's small setting."""


def main() -> None:
    """Print a line for each kind of model and batches, and write one for each run."""
    arguments = _parse()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), arguments.data, arguments.domains)
        for seed in range(arguments.seeds):
            rows += _run_seed(workspace, seed, arguments)
            if arguments.output:
                write_tsv(arguments.output, rows)
    measures = ["last_loss", *(f"ndcg@10 {name}" for name in workspace.collections)]
    for (variant, policy), paper in PAPER.items():
        found = [row for row in rows if (row["variant"], row["batches"]) == (variant, policy)]
        print(f"{summary(f'{variant}, {policy}', found, measures)}  paper {paper}", flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table1")
    parser.add_argument("data", type=Path)
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--domains", nargs="+", required=True)
    parser.add_argument("--start")
    parser.add_argument("--documents", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def _run_seed(workspace: Workspace, seed: int, arguments: argparse.Namespace) -> list[Row]:
    save_start_model(workspace.folder / "start", "transformer", seed)
    settings = BASE["train"]["biencoder"] | ({"model": arguments.start, "max_length": 64} if arguments.start else {})
    changes = {
        "base.seed": seed,
        "cluster.vectors": arguments.vectors,
        "filter.vectors": arguments.vectors,
        "pack.epochs": arguments.epochs,
        "train.common.epochs": arguments.epochs,
        "train.biencoder": settings,
        "train.cde": settings | {"documents": arguments.documents},
    }
    if arguments.start:
        changes["train.common.learning_rate"] = 2e-5
    if arguments.steps:
        changes["train.common.steps"] = arguments.steps
    workspace.set_params(BASE, changes)
    workspace.filter()
    for stage in ("cluster", "pack random", "pack contextual"):
        workspace.run(stage)
    return [_train(workspace, variant, policy, seed) for variant, policy in PAPER]


def _train(workspace: Workspace, variant: str, policy: str, seed: int) -> Row:
    workspace.run(f"train {variant} --batches {policy}")
    name = variant if policy == "contextual" else f"{variant}-{policy}"
    trained = read_json(workspace.folder / f"results/train/{name}.json", made_by="train")
    model = workspace.folder / "models" / name
    scores = {f"ndcg@10 {key}": ndcg(variant, model, each) for key, each in workspace.collections.items()}
    return {"variant": variant, "batches": policy, "seed": seed, "last_loss": trained["last_loss"], **scores}


if __name__ == "__main__":
    main()
