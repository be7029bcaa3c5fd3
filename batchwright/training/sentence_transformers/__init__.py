"""Shards for the trainer of sentence-transformers."""

from batchwright.training.sentence_transformers.dataset import ShardBatchSampler, shard_dataset, training_arguments
from batchwright.training.sentence_transformers.losses import (
    CachedMaskedMultipleNegativesRankingLoss,
    MaskedMultipleNegativesRankingLoss,
)

__all__ = [
    "CachedMaskedMultipleNegativesRankingLoss",
    "MaskedMultipleNegativesRankingLoss",
    "ShardBatchSampler",
    "shard_dataset",
    "training_arguments",
]
