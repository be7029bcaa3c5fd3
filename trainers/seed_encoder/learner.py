"""Fine-tunes SEED-Encoder. A text's vector is its CLS state; batches and masks are those of the biencoder."""

from pathlib import Path
from typing import cast

from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from batchwright.core.errors import InputError
from batchwright.training.losses import hinge, info_nce
from trainers.common.sentence_learner import SentenceLearner
from trainers.common.train_job import TrainJob
from trainers.seed_encoder.params import Params

CARD = Path(__file__).with_name("card.md")
OBJECTIVES = {"infonce": info_nce, "hinge": hinge}


def build_learner(job: TrainJob) -> SentenceLearner:
    """Load the start model, ready for training; CLS pooling replaces its own pooling.

    Raises:
        InputError: there is no such model, or it is not a transformer with a CLS token and a pooling module.
    """
    params = cast(Params, job.params)
    learner = SentenceLearner(job, params.temperature, OBJECTIVES[params.loss], CARD)
    match list(learner.model):
        case [Transformer() as encoder, Pooling(), *_] if encoder.tokenizer.cls_token_id is not None:
            learner.model[1] = Pooling(encoder.get_embedding_dimension(), pooling_mode="cls")
            return learner
    raise InputError(f"model '{job.start_model}': has no CLS state; use an encoder such as BERT")
