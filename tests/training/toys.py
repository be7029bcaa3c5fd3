"""Toy shards of two epochs, with masks and hard negatives, and a toy model that is trained from scratch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.formats.shards import ShardSet
from tests.train.toys import describe, toy_batch, toy_rows, toy_tokenizer, write_toy_shards

SIZE, BATCHES = 10, 4


def write_shards(
    folder: Path, batches: int = BATCHES, negatives: Sequence[int] = range(4), scored: bool = False
) -> ShardSet:
    """``batches`` of ten rows an epoch; three of ten cells are masked.

    Rows have so many hard negatives in turn, and a teacher's scores if they are ``scored``.
    """
    generator, teacher = np.random.default_rng(3), np.random.default_rng(4)
    rows = [
        row | {"negatives": [f"w{n} w{k} w7" for k in range(negatives[n % len(negatives)])]}
        for n, row in enumerate(toy_rows(2 * batches * SIZE))
    ]
    if scored:
        rows = [row | {"scores": teacher.normal(size=1 + len(row["negatives"])).tolist()} for row in rows]
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
