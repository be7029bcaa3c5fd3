"""Shards for the trainer of sentence-transformers."""

from batchwright.training.sentence_transformers.dataset import ShardBatchSampler, shard_dataset, training_arguments
from batchwright.training.sentence_transformers.losses import (
    CachedMaskedMultipleNegativesRankingLoss,
    MaskedMultipleNegativesRankingLoss,
)
from batchwright.training.sentence_transformers.multi_vector import (
    CachedMaskedMultiVectorMultipleNegativesRankingLoss,
    MaskedMultiVectorMultipleNegativesRankingLoss,
)

__all__ = [
    "CachedMaskedMultiVectorMultipleNegativesRankingLoss",
    "CachedMaskedMultipleNegativesRankingLoss",
    "MaskedMultiVectorMultipleNegativesRankingLoss",
    "MaskedMultipleNegativesRankingLoss",
    "ShardBatchSampler",
    "shard_dataset",
    "training_arguments",
]
