"""Is a model that sentence-transformers' trainer makes of our shards as good as one of our own trainer?

``python -m experiments.handover DATA --domains ... [--share S] [--seeds N] [--epochs N]
[--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. The same small static model is trained from
scratch on the same shards, first random batches, then hard ones, and documents stand for the whole domain. A seed
changes the batches and the weights; differences to our trainer are paired by query and seed.
"""

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, load_dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import nn

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.training.sentence_transformers import (
    MaskedMultipleNegativesRankingLoss,
    shard_dataset,
    training_arguments,
)
from experiments.common.small_models import BASE, LEARNING_RATES, save_start_model, stretch
from experiments.common.workspace import START, Row, Workspace, training_parser
from stages.scoring.collection import score_queries
from stages.scoring.paired import by_query, difference, estimate
from stages.scoring.retrieval import model_system
from trainers.biencoder import Params
from trainers.common.job import plan_job
from trainers.common.params import Common
from trainers.variants import train

SCALE = 1 / BASE["train"]["biencoder"]["temperature"]
SHARDS = Path("data/shards/contextual")
SCHEDULE = [0.0, 0.5]
Training = Callable[[Workspace, int], Path]
"""Trains on the workspace's shards with a seed; returns the model's folder."""


def main() -> str:
    """Train, compare, print one line per trainer."""
    arguments = _parse()
    scores_of: dict[str, list[dict[str, float]]] = {name: [] for name in TRAININGS}
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), arguments.data, arguments.domains, arguments.share)
        for seed in range(arguments.seeds):
            _pack(workspace, seed, arguments)
            for name, train in TRAININGS.items():
                scores = _score(workspace, train(workspace, seed))
                scores_of[name].append(scores)
                print(f"{name}, seed {seed}: nDCG@10 {statistics.mean(scores.values()):.4f}", flush=True)
    tables = {name: by_query(scores) for name, scores in scores_of.items()}
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
    home = workspace.held_out
    return {query: measures["ndcg@10"] for query, measures in score_queries(home, model_system(model)(home)).items()}


def _row(name: str, table: NDArray[np.float64], reference: NDArray[np.float64]) -> Row:
    gain = difference(table, reference)
    row: Row = {"trainer": name, "nDCG@10": round(estimate(table).mean, 6)}
    row |= {"difference": round(gain.mean, 6), "error": round(gain.error, 6)}
    return row | {"seeds": len(table), "queries": table.shape[1]}


def ours(workspace: Workspace, seed: int) -> Path:
    """What the stage ``train`` runs."""
    shards, model = workspace.folder / SHARDS, workspace.folder / "models/ours"
    epochs = {"epochs": len(ShardSet.open(shards).manifest.epochs)}
    common = {**BASE["train"]["common"], **epochs, "learning_rate": LEARNING_RATES["static"]}
    common["negatives_stand_for"] = "domain"
    job = plan_job(
        name="ours",
        variant="biencoder",
        seed=seed,
        common=Common.model_validate(common),
        params=Params.model_validate(BASE["train"]["biencoder"]),
        start=workspace.folder / START,
        shards=shards,
        model=model,
        curve=workspace.folder / "curve.tsv",
    )
    train(job)
    shutil.rmtree(job.scratch)
    return model


def handed_over(workspace: Workspace, seed: int) -> Path:
    """The trainer of sentence-transformers on our batches, with our masks."""
    shards = ShardSet.open(workspace.folder / SHARDS)
    options = training_arguments(shards)
    return _fit(workspace, shard_dataset(shards, whole_domain=True), MaskedMultipleNegativesRankingLoss, seed, options)


def shuffled(workspace: Workspace, seed: int) -> Path:
    """The same trainer on the rows of all our batches as ``datasets`` loads them, with its own sampler and loss."""
    folder = workspace.folder / SHARDS
    rows = load_dataset(str(folder), split="train", cache_dir=str(workspace.folder / "cache"))
    size = ShardSet.open(folder).manifest.batch_size
    options = {"num_train_epochs": 1, "per_device_train_batch_size": size, "dataloader_drop_last": True}
    return _fit(workspace, rows.select_columns(["query", "document"]), MultipleNegativesRankingLoss, seed, options)


def _fit(
    workspace: Workspace, dataset: Dataset, loss: Callable[..., nn.Module], seed: int, options: dict[str, Any]
) -> Path:
    start, output = workspace.folder / START, workspace.folder / "models/elsewhere"
    common = BASE["train"]["common"]
    arguments = SentenceTransformerTrainingArguments(
        str(output),
        learning_rate=LEARNING_RATES["static"],
        warmup_steps=common["warmup_ratio"],
        weight_decay=common["weight_decay"],
        max_grad_norm=common["max_grad_norm"],
        seed=seed,
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **options,
    )
    model = SentenceTransformer(str(start), device="cpu", local_files_only=True)
    SentenceTransformerTrainer(model, arguments, dataset, loss=loss(model, SCALE)).train()
    model.save(str(output), create_model_card=False)
    ModelInfo.read(start).write(output)
    return output


TRAININGS: dict[str, Training] = {
    "Batchwright": ours,
    "sentence-transformers": handed_over,
    "sentence-transformers, rows shuffled": shuffled,
}
if __name__ == "__main__":
    run("handover", main)
