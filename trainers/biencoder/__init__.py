"""The plain biencoder: one encoder for queries and documents, one vector per text, masked InfoNCE."""

from trainers.common.job import TrainJob
from trainers.common.params import VariantParams
from trainers.common.sentence_learner import SentenceLearner


class Params(VariantParams):
    """Group ``train.biencoder``."""


def build_learner(job: TrainJob) -> SentenceLearner:
    """Load the start model, ready for training."""
    return SentenceLearner(job)
