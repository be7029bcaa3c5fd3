"""SEED-Encoder: an encoder pre-trained with a weak decoder, then fine-tuned (*Less is More*, arXiv 2102.09206)."""

from typing import Literal, cast

from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from batchwright.core.errors import InputError
from batchwright.training.losses import hinge, info_nce
from trainers.common.job import TrainJob
from trainers.common.params import VariantParams
from trainers.common.sentence_learner import SentenceLearner

OBJECTIVES = {"infonce": info_nce, "hinge": hinge}


class Params(VariantParams):
    """Group ``train.seed_encoder``."""

    loss: Literal["infonce", "hinge"] = "infonce"
    """The loss: masked InfoNCE, or the paper's hinge loss with margin 1."""


def build_learner(job: TrainJob) -> SentenceLearner:
    """Load the start model, ready for training; CLS pooling replaces its own pooling.

    Raises:
        InputError: there is no such model, or it is not a transformer with a CLS token and a pooling module.
    """
    learner = SentenceLearner(job, OBJECTIVES[cast(Params, job.params).loss])
    match list(learner.model):
        case [Transformer() as encoder, Pooling(), *_] if encoder.tokenizer.cls_token_id is not None:
            learner.model[1] = Pooling(encoder.get_embedding_dimension(), pooling_mode="cls")
            return learner
    raise InputError(f"model '{job.start_model}': has no CLS state; use an encoder such as BERT")
