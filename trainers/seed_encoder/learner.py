"""Fine-tuning SEED-Encoder, whose vector is the state at CLS; masks and batches are the biencoder's."""

from pathlib import Path
from typing import cast

from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from batchwright.core.errors import InputError
from trainers.common.losses import hinge, info_nce
from trainers.common.sentence_learner import SentenceLearner
from trainers.common.train_job import TrainJob
from trainers.seed_encoder.params import Params

CARD = Path(__file__).with_name("card.md")
OBJECTIVES = {"infonce": info_nce, "hinge": hinge}


def build_learner(job: TrainJob) -> SentenceLearner:
    """The start model, ready to be trained, its vector the state at CLS whatever it was before.

    Raises:
        InputError: there is no such model, or it is no transformer, reads no CLS, or pools no states.
    """
    params = cast(Params, job.params)
    learner = SentenceLearner(job, params.temperature, OBJECTIVES[params.loss], CARD)
    match list(learner.model):
        case [Transformer() as encoder, Pooling(), *_] if encoder.tokenizer.cls_token_id is not None:
            learner.model[1] = Pooling(encoder.get_embedding_dimension(), pooling_mode="cls")
            return learner
    raise InputError(f"model '{job.start_model}': gives no state at CLS; take an encoder such as BERT")
