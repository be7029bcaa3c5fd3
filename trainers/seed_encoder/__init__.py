"""SEED-Encoder: an encoder pre-trained with a weak decoder, then fine-tuned (*Less is More*, arXiv 2102.09206)."""

from functools import partial
from typing import Literal, cast

from pydantic import Field
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from batchwright.core.errors import InputError
from batchwright.training.losses import hinge
from trainers.common.job import TrainJob
from trainers.common.params import Common, VariantParams, refuse
from trainers.common.sentence_learner import SentenceLearner


class Params(VariantParams):
    """Group ``train.seed_encoder``."""

    loss: Literal["infonce", "hinge"] = "infonce"
    """The loss: masked InfoNCE, or the paper's hinge loss, which has a ``margin`` and no ``temperature``."""
    margin: float = Field(default=0.2, gt=0, le=2)
    """By how much cosine a positive must outscore each negative to cost nothing in the hinge loss."""

    def check(self, name: str, common: Common) -> None:
        """See ``VariantParams``."""
        if self.loss == "hinge":
            why = "loss: hinge; remove it, or set loss to infonce"
            refuse(name, common, ["directions", "hardness_strength", "distill", "negatives_stand_for"], why)
            refuse(name, self, ["temperature"], why)
        else:
            refuse(name, self, ["margin"], "loss: infonce; remove it, or set loss to hinge")


def build_learner(job: TrainJob) -> SentenceLearner:
    """Load the start model, ready for training; CLS pooling replaces its own pooling.

    Raises:
        InputError: there is no such model, or it is not a transformer with a CLS token and a pooling module.
    """
    params = cast(Params, job.params)
    learner = (
        SentenceLearner(job, partial(hinge, margin=params.margin), temperature=1)
        if params.loss == "hinge"
        else SentenceLearner(job)
    )
    match list(learner.model):
        case [Transformer() as encoder, Pooling(), *_] if encoder.tokenizer.cls_token_id is not None:
            learner.model[1] = Pooling(encoder.get_embedding_dimension(), pooling_mode="cls")
            return learner
    raise InputError(f"model '{job.start_model}': has no CLS state; use an encoder such as BERT")
