"""Trains XTR."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense
from torch import nn

from batchwright.formats.shards import Manifest
from batchwright.retrievers.xtr.model import Task, save_token_model
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Outcome
from trainers.common.card import write_card
from trainers.common.gradient_cache import CachedForward
from trainers.common.train_job import TrainJob
from trainers.xtr.contrast import contrast_tokens
from trainers.xtr.embed import embed_tokens
from trainers.xtr.params import Params
from trainers.xtr.start import start_from


class TokenLearner:
    """A ``trainers.common.run.Learner`` for a MultiVectorEncoder."""

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self.model: MultiVectorEncoder = start_from(job.start_model, job.info, job.device, self._params.width)
        new = [module for module in self.model if isinstance(module, Dense)] if job.info.variant != "xtr" else []
        self.fresh: Sequence[nn.Parameter] = [each for module in new for each in module.parameters()]

    def backward(self, batch: TrainBatch) -> Outcome:
        """See ``Learner``; uses a gradient cache, and one retrieval pool for the whole batch."""
        queries = self._forward(batch.queries, "query")
        documents = self._forward(batch.documents + batch.negatives, "document")
        k = self._params.k if self._params.score == "xtr" else None
        return contrast_tokens(queries, documents, batch, k, self._params.temperature)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a MultiVectorEncoder folder with a model card."""
        save_token_model(self.model, folder, self._job.info.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _forward(self, texts: list[str], task: Task) -> CachedForward[dict[str, Any]]:
        size = self._job.common.mini_batch_size
        chunks = [self.model.preprocess(texts[start : start + size], task=task) for start in range(0, len(texts), size)]
        length = max(chunk["input_ids"].shape[1] for chunk in chunks)
        return CachedForward(lambda features: embed_tokens(self.model, features, task, length), chunks)
