"""Fine-tuning SEED-Encoder, whose vector is the state at CLS; masks and batches are the biencoder's."""

from pathlib import Path
from typing import cast

from trainers.job import TrainJob
from trainers.loop import run_training
from trainers.loss import contrast, hinge
from trainers.randomness import seed_start
from trainers.seed.params import Params
from trainers.sentence_learner import SentenceLearner

CARD = Path(__file__).with_name("card.md")
OBJECTIVES = {"infonce": contrast, "hinge": hinge}


def train(job: TrainJob) -> None:
    """Train one rank; see ``trainers.variants.Variant``."""
    seed_start(job.seed)
    run_training(job, build_learner(job))


def build_learner(job: TrainJob) -> SentenceLearner:
    """The start model, ready to be trained."""
    params = cast(Params, job.params)
    return SentenceLearner(job, params.temperature, OBJECTIVES[params.loss], CARD)
