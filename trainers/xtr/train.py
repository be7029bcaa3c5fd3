"""Training XTR."""

from pathlib import Path
from typing import Any, cast

from sentence_transformers import MultiVectorEncoder

from formats.manifest import Manifest
from trainers.batches import TrainBatch
from trainers.card import write_card
from trainers.gradient_cache import CachedForward
from trainers.job import TrainJob
from trainers.loop import run_training
from trainers.loss import Outcome
from trainers.randomness import seed_start
from trainers.xtr.contrast import contrast_tokens
from trainers.xtr.model import Task, embed_tokens, save_token_model, start_from
from trainers.xtr.params import Params


def train(job: TrainJob) -> None:
    """Train one rank; see ``trainers.variants.Variant``."""
    seed_start(job.seed)
    run_training(job, TokenRetriever(job))


class TokenRetriever:
    """A ``trainers.loop.Learner`` around a MultiVectorEncoder."""

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self.model: MultiVectorEncoder = start_from(job.start_model, job.params.max_length, job.device)

    def backward(self, batch: TrainBatch) -> Outcome:
        """Two-pass gradient over the whole batch, whose tokens are all in one pool."""
        queries = self._forward(batch.queries, "query")
        documents = self._forward(batch.documents + batch.negatives, "document")
        k = self._params.k if self._params.score == "xtr" else None
        return contrast_tokens(queries, documents, batch, k, self._params.temperature)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a MultiVectorEncoder folder with a model card."""
        save_token_model(self.model, folder, self._job.params.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _forward(self, texts: list[str], task: Task) -> CachedForward[dict[str, Any]]:
        size = self._job.common.chunk
        chunks = [self.model.preprocess(texts[start : start + size], task=task) for start in range(0, len(texts), size)]
        length = max(chunk["input_ids"].shape[1] for chunk in chunks)
        return CachedForward(lambda features: embed_tokens(self.model, features, task, length), chunks)
