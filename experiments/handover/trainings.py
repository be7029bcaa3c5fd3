"""The same start model trained on the same shards, by our trainer and by that of sentence-transformers."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import nn

from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.training.sentence_transformers import (
    MaskedMultipleNegativesRankingLoss,
    shard_dataset,
    training_arguments,
)
from experiments.common.small_models import BASE, LEARNING_RATES
from experiments.common.workspace import START, Workspace
from trainers.biencoder import Params
from trainers.common.params import Common
from trainers.common.train_job import plan_job
from trainers.variants import train

SCALE = 1 / BASE["train"]["biencoder"]["temperature"]
SHARDS = Path("data/shards/contextual")

Training = Callable[[Workspace, int], Path]
"""Trains on the workspace's shards with a seed; returns the model's folder."""


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
    given = training_arguments(shards)
    return _fit(workspace, shard_dataset(shards, whole_domain=True), MaskedMultipleNegativesRankingLoss, seed, given)


def shuffled(workspace: Workspace, seed: int) -> Path:
    """The same trainer on the rows of all our batches as ``datasets`` loads them, with its own sampler and loss."""
    folder = workspace.folder / SHARDS
    rows = load_dataset(str(folder), split="train", cache_dir=str(workspace.folder / "cache"))
    size = ShardSet.open(folder).manifest.batch_size
    given = {"num_train_epochs": 1, "per_device_train_batch_size": size, "dataloader_drop_last": True}
    return _fit(workspace, rows.select_columns(["query", "document"]), MultipleNegativesRankingLoss, seed, given)


TRAININGS: dict[str, Training] = {
    "Batchwright": ours,
    "sentence-transformers": handed_over,
    "sentence-transformers, rows shuffled": shuffled,
}


def _fit(
    workspace: Workspace, dataset: Dataset, loss: Callable[..., nn.Module], seed: int, given: dict[str, Any]
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
        **given,
    )
    model = SentenceTransformer(str(start), device="cpu", local_files_only=True)
    SentenceTransformerTrainer(model, arguments, dataset, loss=loss(model, SCALE)).train()
    model.save(str(output), create_model_card=False)
    ModelInfo.read(start).write(output)
    return output
