"""Trains the biencoder."""

from pathlib import Path
from typing import cast

from batchwright.training.losses import info_nce
from trainers.biencoder.params import Params
from trainers.common.sentence_learner import SentenceLearner
from trainers.common.train_job import TrainJob

CARD = Path(__file__).with_name("card.md")


def build_learner(job: TrainJob) -> SentenceLearner:
    """Load the start model, ready for training."""
    return SentenceLearner(job, cast(Params, job.params).temperature, info_nce, CARD)
