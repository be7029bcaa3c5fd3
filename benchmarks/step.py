"""What the mask costs a training step: a stored mask, no mask, and a mask computed in each step by a guide model.

``python -m benchmarks.step [--steps N]`` takes the packed default corpus (run ``dvc repro pack fetch`` first), runs the
same batches through the three in turn, and prints medians and their ratios; the bar for stored masks is 1.05.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch
from sentence_transformers.sentence_transformer.losses import GISTEmbedLoss
from torch import Tensor
from torch.nn import functional

from batchwright.core.command import new_parser
from batchwright.core.params import Base, load_params
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import load_model
from batchwright.training.batches import BatchReader, TrainBatch
from batchwright.training.losses import Outcome
from trainers.biencoder import build_learner
from trainers.biencoder.params import Params
from trainers.common import contrastive
from trainers.common.embed import preprocess
from trainers.common.params import Common
from trainers.common.run import Learner
from trainers.common.train_job import TrainJob, plan_job

BAR = 1.05
SHARDS = Path("data/shards/contextual")
START = Path("models/start/minilm")

Step = Callable[[TrainBatch], object]


def main() -> None:
    """Print the median time per step of each, and its ratio to the step without a mask."""
    parser = new_parser("benchmarks.step", str(__doc__), "python -m benchmarks.step --steps 15")
    parser.add_argument("--steps", type=int, default=15)
    arguments = parser.parse_args()
    job = _job()
    shards = ShardSet.open(SHARDS)
    reader = BatchReader(shards, job.info.prefixes, job.common.hard_negatives)
    ways = {"without": _unmasked(job), "stored": _ours(build_learner(job)), "guided": _guided(job)}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(arguments.steps):
        index = number % shards.manifest.batches
        for name, step in ways.items():
            start = time.perf_counter()
            step(reader.read(index, slice(0, shards.manifest.batch_size)))
            seconds[name].append(time.perf_counter() - start)
    without = statistics.median(seconds["without"])
    for name, found in seconds.items():
        middle = statistics.median(found)
        print(f"{name:8} {1000 * middle:8.1f} ms per step, ratio {middle / without:.3f}")
    print(f"bar for stored: {BAR}")


def _job() -> TrainJob:
    return plan_job(
        name="biencoder",
        variant="biencoder",
        seed=load_params("base", Base).seed,
        common=load_params("train.common", Common),
        params=load_params("train.biencoder", Params),
        start=START,
        shards=SHARDS,
        model=Path("models/biencoder"),
        curve=Path("results/train/biencoder.tsv"),
    )


def _ours(learner: Learner) -> Step:
    return lambda batch: learner.backward(learner.prepare(batch))


def _unmasked(job: TrainJob) -> Step:
    """The biencoder's step with a loss that ignores the mask."""
    learner = build_learner(job)

    def step(batch: TrainBatch) -> object:
        with mock.patch.object(contrastive, "compare", _without_mask):
            return learner.backward(learner.prepare(batch))

    return step


def _without_mask(
    queries: Tensor,
    documents: Tensor,
    _masked: Tensor,
    negatives: Tensor,
    _absent: Tensor,
    temperature: float,
    *_: object,
) -> Outcome:
    own = torch.einsum("bd,bkd->bk", queries, negatives)
    scores = torch.cat([queries @ documents.T, own], dim=1) / temperature
    return Outcome(functional.cross_entropy(scores, torch.arange(len(scores))), torch.zeros(()))


def _guided(job: TrainJob) -> Step:
    """A step with sentence-transformers' GIST loss, which runs a guide model; here a copy of the start model."""
    model, guide = (load_model(job.start_model, job.info.max_length, job.device) for _ in range(2))
    loss = GISTEmbedLoss(model, guide, temperature=load_params("train.biencoder", Params).temperature)

    def step(batch: TrainBatch) -> object:
        found = loss([preprocess(model, batch.queries), preprocess(model, batch.documents)], torch.empty(0))
        found.backward()
        return found

    return step


if __name__ == "__main__":
    main()
