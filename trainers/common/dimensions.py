"""Whether vectors can be cut to the dimensions that a training asks for."""

import sys

from sentence_transformers import SentenceTransformer

from batchwright.core.errors import InputError
from trainers.common.distributed import rank
from trainers.common.job import TrainJob


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
