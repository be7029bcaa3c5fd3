"""Shards for the trainer of sentence-transformers."""

from batchwright.training.sentence_transformers.dataset import shard_dataset
from batchwright.training.sentence_transformers.losses import (
    CachedMaskedMultipleNegativesRankingLoss,
    MaskedMultipleNegativesRankingLoss,
)
from batchwright.training.sentence_transformers.sampler import ShardBatchSampler, training_arguments

__all__ = [
    "CachedMaskedMultipleNegativesRankingLoss",
    "MaskedMultipleNegativesRankingLoss",
    "ShardBatchSampler",
    "shard_dataset",
    "training_arguments",
]
