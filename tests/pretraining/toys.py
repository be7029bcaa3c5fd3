"""Pre-training small enough to run in a second."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel

from tests.helpers import topic_pairs, write_pairs
from trainers.pretraining.decoders import Shape
from trainers.pretraining.job import PretrainJob, plan_pretraining
from trainers.pretraining.model import Pretrained, Sequences
from trainers.pretraining.params import Enhanced, PretrainParams, Weak

WIDTH = 16
VOCABULARY = 50
LENGTH = 14
SHAPE = Shape(width=WIDTH, heads=2, feed_forward=32, positions=LENGTH + 2, dropout=0.0)
WEAK = Weak(kind="weak", layers=3, window=2)

ENCODER: dict[str, Any] = {
    "kind": "new",
    "vocab_size": 300,
    "config": {
        "hidden_size": WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
}
DROPPING = ENCODER | {"config": {key: value for key, value in ENCODER["config"].items() if "dropout" not in key}}
"""The same encoder with its usual dropout of 0.1."""
PARAMS: dict[str, Any] = {
    "encoder": ENCODER,
    "decoder": {"kind": "weak"},
    "max_length": 16,
    "batch_size": 6,
    "mini_batch_size": 4,
    "steps": 6,
    "held_out": 0.2,
    "validations": 2,
    "learning_rate": 1e-3,
    "warmup_ratio": 0.1,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
}


def tiny_encoder() -> BertModel:
    torch.manual_seed(0)
    return BertModel(
        BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=LENGTH + 2,
        )
    )


def tiny_model(decoder: Weak | Enhanced | None) -> Pretrained:
    """Randomly initialised, without dropout."""
    return Pretrained(tiny_encoder(), SHAPE, decoder).eval()


def sequences(count: int, seed: int = 0, shortest: int = 5) -> Sequences:
    """Sequences of random tokens, some of them padding (0) and some chosen."""
    generator = np.random.default_rng(seed)
    tokens = torch.from_numpy(generator.integers(5, VOCABULARY, (count, LENGTH)))
    lengths = torch.from_numpy(generator.integers(shortest, LENGTH + 1, count))
    present = torch.arange(LENGTH) < lengths[:, None]
    chosen = torch.from_numpy(generator.random((count, LENGTH)) < 0.3) & present
    chosen[:, 1] = True
    tokens = tokens.where(present, 0)
    return Sequences(tokens, tokens.masked_fill(chosen, 4), chosen, present)


def pretrain_job(folder: Path, **changes: Any) -> PretrainJob:
    """A job on ``data/pairs`` in the working directory, which is written if it does not exist."""
    if not Path("data/pairs").exists():
        write_pairs("toys", topic_pairs(60))
    return plan_pretraining(
        name="seed_encoder",
        seed=3,
        params=PretrainParams.model_validate(PARAMS | changes),
        pairs=Path("data/pairs"),
        model=folder / "model",
        results=folder / "results",
    )
