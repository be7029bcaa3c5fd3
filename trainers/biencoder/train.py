"""Training the biencoder."""

from pathlib import Path
from typing import cast

from trainers.biencoder.params import Params
from trainers.job import TrainJob
from trainers.loop import run_training
from trainers.loss import contrast
from trainers.randomness import seed_start
from trainers.sentence_learner import SentenceLearner

CARD = Path(__file__).with_name("card.md")


def train(job: TrainJob) -> None:
    """Train one rank; see ``trainers.variants.Variant``."""
    seed_start(job.seed)
    run_training(job, build_learner(job))


def build_learner(job: TrainJob) -> SentenceLearner:
    """The start model, ready to be trained."""
    return SentenceLearner(job, cast(Params, job.params).temperature, contrast, CARD)
