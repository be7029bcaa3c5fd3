"""The loss that the parameters of a training ask for, and what does not go together in it."""

import sys
from functools import partial

from sentence_transformers import SentenceTransformer

from batchwright.core.errors import InputError
from batchwright.training.losses import Distill, Objective, Terms, info_nce
from trainers.common.distributed import rank
from trainers.common.job import TrainJob
from trainers.common.params import Common


def objective_of(common: Common) -> Objective:
    """InfoNCE with the terms and the teacher that ``common`` asks for."""
    terms = Terms(
        directions=tuple(common.directions),
        partition_mode=common.partition_mode,
        hardness_mode=common.hardness_mode,
        hardness_strength=common.hardness_strength,
    )
    return partial(info_nce, terms=terms, distill=Distill(**common.distill.model_dump()) if common.distill else None)


def check_dimensions(job: TrainJob, model: SentenceTransformer) -> None:
    """Check that vectors can be cut to the job's ``dimensions``; warn if they are nowhere compared as a whole.

    Raises:
        InputError: they have fewer dimensions.
    """
    dimensions, whole = job.common.dimension_weights, model.get_embedding_dimension() or 0
    if not dimensions:
        return
    if max(dimensions) > whole:
        raise InputError(
            f"train {job.name}: dimensions has {max(dimensions)}, but vectors of model '{job.start_model.name}' have "
            f"{whole}; lower it"
        )
    if whole not in dimensions and rank() == 0:
        print(
            f"warning: train {job.name}: dimensions lacks {whole}, so that whole vectors are not trained for",
            file=sys.stderr,
        )
