"""Training the biencoder."""

from pathlib import Path
from typing import cast

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from formats.manifest import Manifest
from trainers.batches import TrainBatch
from trainers.biencoder.params import Params
from trainers.card import write_card
from trainers.distributed import gather_rows
from trainers.gradient_cache import CachedForward
from trainers.job import TrainJob
from trainers.loop import run_training
from trainers.loss import Outcome, info_nce
from trainers.randomness import seed_start
from trainers.sentence_model import embed, load_model, preprocess, save_model


def train(job: TrainJob) -> None:
    """Train one rank; see ``trainers.variants.Variant``."""
    seed_start(job.seed)
    run_training(job, Biencoder(job))


class Biencoder:
    """A ``trainers.loop.Learner`` around a SentenceTransformer."""

    def __init__(self, job: TrainJob) -> None:
        self.model: SentenceTransformer = load_model(job.start_model, job.params.max_length, job.device)
        self._job = job
        self._params = cast(Params, job.params)

    def backward(self, batch: TrainBatch) -> Outcome:
        """Two-pass gradient over the whole batch; see ``trainers.gradient_cache``."""
        queries = self._forward(batch.queries)
        documents = self._forward(batch.documents + batch.negatives)
        present = self._present(batch)
        own_present = present[batch.rows]
        positives, negatives = documents.output.tensor_split([len(batch.documents)])
        own = (queries.output, positives, _spread(negatives, own_present))
        leaves = [gather_rows(each, batch.size).requires_grad_() for each in own]

        masked = torch.from_numpy(batch.masked).to(present.device)
        outcome = info_nce(leaves[0], leaves[1], masked, leaves[2], ~present, self._params.temperature)
        gradients = [each[batch.rows] for each in torch.autograd.grad(outcome.loss, leaves)]
        queries.backward(gradients[0])
        documents.backward(torch.cat([gradients[1], gradients[2][own_present]]))
        return Outcome(outcome.loss.detach(), outcome.accuracy)

    def save(self, folder: Path, manifest: Manifest, steps: int) -> None:
        """Write a sentence-transformers folder with a model card."""
        save_model(self.model, folder, self._job.params.prefixes.default)
        write_card(folder, Path(__file__).with_name("card.md"), self._job, manifest, steps)

    def _forward(self, texts: list[str]) -> CachedForward[dict[str, Tensor]]:
        chunk = self._job.common.chunk
        chunks = [preprocess(self.model, texts[start : start + chunk]) for start in range(0, len(texts), chunk)]
        return CachedForward(lambda features: embed(self.model, features), chunks)

    def _present(self, batch: TrainBatch) -> Tensor:
        """Which of the ``(B, K)`` places for hard negatives are taken."""
        counts = batch.negative_counts
        return torch.from_numpy(np.arange(counts.max()) < counts[:, None]).to(self.model.device)


def _spread(negatives: Tensor, present: Tensor) -> Tensor:
    """Negatives ``(n, d)`` on their places ``(b, K)``; the others are zero."""
    places = negatives.new_zeros(*present.shape, negatives.shape[1])
    places[present] = negatives
    return places
