"""Table 1 of *Contextual Document Embeddings* on a small scale: biencoder and CDE, random and contextual batches.

``python -m experiments.cde.table1 DATA --domains ... [--start MODEL] [--models ...] [--batches ...] [--documents J]
[--batch B] [--epochs N] [--steps N] [--schedule S ...] [--seeds N] [--output FILE] [--keep FOLDER]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. All models train on the same pairs for the same
number of steps. ``home`` are the held-out queries of ``--domains``, ``elsewhere`` those of all other domains. Without
``--start``, training starts from a small encoder with random weights. ``--schedule`` is ``pack.cluster_share``,
stretched over the epochs: 1 makes contextual batches from clusters, 0 from random pairs. ``--keep`` names a folder for
the trained models.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from batchwright.core.results import read_json, write_tsv
from experiments.common.arguments import training_parser
from experiments.common.small_models import BASE, fetched, ndcg, prepare_start, stretch
from experiments.common.workspace import Row, Workspace, summary

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "biencoder": ("biencoder", {}),
    "cde": ("cde", {}),
    "cde, fixed context": ("cde", {"context_reads_text": False}),
}
POLICIES = ("random", "contextual")
PAPER = {
    ("biencoder", "random"): 59.9,
    ("biencoder", "contextual"): 61.7,
    ("cde", "random"): 62.4,
    ("cde", "contextual"): 63.1,
}
"""nDCG@10 on truncated BEIR, in the paper's small setting."""


def main() -> None:
    """Print one line per kind of model and batches, and write one row per run."""
    arguments = _parse()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), arguments.data, arguments.domains)
        for seed in range(arguments.seeds):
            rows += _run_seed(workspace, seed, arguments)
            if arguments.output:
                write_tsv(arguments.output, rows)
    measures = ["last_loss", *(f"ndcg@10 {name}" for name in workspace.collections)]
    for model in arguments.models:
        for policy in arguments.batches:
            found = [row for row in rows if (row["model"], row["batches"]) == (model, policy)]
            paper = PAPER.get((model, policy), "-")
            print(f"{summary(f'{model}, {policy}', found, measures)}  paper {paper}", flush=True)


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.cde.table1", str(__doc__), "python -m experiments.cde.table1 data --domains medquad --documents 16"
    )
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--start")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="MODEL")
    parser.add_argument("--batches", nargs="+", choices=POLICIES, default=POLICIES)
    parser.add_argument("--documents", type=int, default=64)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--schedule", nargs="+", type=float, default=[0.0, 1.0])
    parser.add_argument("--keep", type=Path)
    return parser.parse_args()


def _run_seed(workspace: Workspace, seed: int, arguments: argparse.Namespace) -> list[Row]:
    changes: dict[str, Any] = {
        "base.seed": seed,
        "cluster.vectors": arguments.vectors,
        "cluster.cluster_size": arguments.batch,
        "filter.vectors": arguments.vectors,
        "pack.batch_size": arguments.batch,
        "pack.epochs": arguments.epochs,
        "pack.cluster_share": stretch(arguments.schedule, arguments.epochs),
        "train.common.epochs": arguments.epochs,
        "train.common.steps": arguments.steps,
    }
    if arguments.start:
        changes["train.common.learning_rate"] = 5e-5
        changes["start_models.model"] = fetched(arguments.start)
    workspace.set_params(BASE, changes)
    prepare_start(workspace, arguments.start, "transformer", seed)
    workspace.filter()
    for stage in ("cluster", *(f"pack {policy}" for policy in arguments.batches)):
        workspace.run(stage)
    rows = []
    for model in arguments.models:
        workspace.set_params(BASE, changes | _variant_params(model, arguments))
        rows += [_train(workspace, model, policy, seed, arguments) for policy in arguments.batches]
    return rows


def _variant_params(model: str, arguments: argparse.Namespace) -> dict[str, Any]:
    variant, options = MODELS[model]
    settings = dict(BASE["train"]["biencoder"])
    if variant == "cde":
        settings |= {"context_documents": arguments.documents, **options}
    return {f"train.{variant}": settings}


def _train(workspace: Workspace, model: str, policy: str, seed: int, arguments: argparse.Namespace) -> Row:
    folder = workspace.train(MODELS[model][0], policy)
    trained = read_json(workspace.folder / "results/train/trained.json", made_by="train")
    scores = {f"ndcg@10 {key}": ndcg(folder, each) for key, each in workspace.collections.items()}
    if arguments.keep:
        shutil.copytree(folder, arguments.keep / f"{model}, {policy}, {seed}", dirs_exist_ok=True)
    return {
        "domains": " ".join(arguments.domains),
        "start": arguments.start or "random weights",
        "documents": arguments.documents,
        "batch": arguments.batch,
        "steps": trained["steps"],
        "model": model,
        "batches": policy,
        "seed": seed,
        "last_loss": trained["last_loss"],
        **scores,
    }


if __name__ == "__main__":
    main()
