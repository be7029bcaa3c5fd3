"""Toy shards of two epochs, with masks and hard negatives, and a toy model that is trained from scratch."""

from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.formats.shards import ShardSet
from tests.train.toys import describe, toy_batch, toy_rows, toy_tokenizer, write_toy_shards

SIZE, BATCHES = 10, 4


def write_shards(folder: Path, batches: int = BATCHES) -> ShardSet:
    """``batches`` of ten rows an epoch; a row has none to three hard negatives, and three of ten cells are masked."""
    generator = np.random.default_rng(3)
    rows = [
        row | {"negatives": [f"w{n} w{k} w7" for k in range(n % 4)]}
        for n, row in enumerate(toy_rows(2 * batches * SIZE))
    ]
    packed = [
        toy_batch(rows[start : start + SIZE], generator.random((SIZE, SIZE)) < 0.3)
        for start in range(0, len(rows), SIZE)
    ]
    return ShardSet.open(write_toy_shards(folder, packed, epochs=2))


def write_static_model(folder: Path) -> Path:
    """One vector of width 16 per token."""
    torch.manual_seed(0)
    module = StaticEmbedding(toy_tokenizer(), embedding_dim=16)
    SentenceTransformer(modules=[module], device="cpu").save(str(folder), create_model_card=False)
    return describe(folder)
