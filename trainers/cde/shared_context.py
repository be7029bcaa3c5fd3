"""The context that all texts of a batch share, computed by all ranks together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.training.batches import TrainBatch
from trainers.common.distributed import sum_ranks
from trainers.common.job_passes import Draws, JobPasses
from trainers.common.passes.groups import Features, Group, group_texts
from trainers.common.passes.precision import sent


@dataclass(frozen=True)
class ContextTexts:
    """The J ``count`` context documents of a batch: ``places`` are those of this rank, in ``groups``."""

    count: int
    places: list[int]
    groups: list[Group]

    @classmethod
    def choose(
        cls,
        batch: TrainBatch,
        documents: int,
        preprocess: Callable[[list[str]], Features],
        most: int,
        rng: np.random.Generator,
    ) -> Self:
        """Choose ``documents`` of a batch's documents, or all if it has fewer, with the same ``rng`` on all ranks."""
        chosen = rng.permutation(batch.size)[:documents]
        place_of_row = {row: place for place, row in enumerate(range(batch.size)[batch.rows])}
        places = [place for place, row in enumerate(chosen.tolist()) if row in place_of_row]
        texts = [batch.documents[place_of_row[int(chosen[place])]] for place in places]
        return cls(len(chosen), places, group_texts(preprocess, texts, chosen[places], most))


class SharedContext:
    """Runs stage 1 on a batch's context documents: each rank embeds those among its own rows.

    ``prepared`` is what stage 2 reads, computed by every rank from the context vectors of all ranks. Stage 2 leaves its
    gradient in ``prepared.grad``; ``backward`` backpropagates it, and sums it over ranks at the context vectors.
    """

    def __init__(self, passes: JobPasses, encoder: ContextualEncoder, batch: TrainBatch, texts: ContextTexts) -> None:
        device = encoder.gate.device
        self._places = sent(np.array(texts.places, np.int64), device)
        self._stage = (
            passes.forward(
                batch, lambda each: encoder.embed_context(each).float(), texts.groups, Draws.CONTEXT_DOCUMENTS
            )
            if texts.groups
            else None
        )
        vectors = encoder.gate.new_zeros(texts.count, encoder.backbone.config.hidden_size)
        if self._stage is not None:
            vectors[self._places] = self._stage.output
        self._vectors = sum_ranks(vectors).requires_grad_()
        with passes.training(batch, Draws.CONTEXT):
            self._prepared = encoder.prepare(self._vectors).float()
        self.prepared = self._prepared.detach().requires_grad_()

    def backward(self) -> None:
        """Backpropagate ``prepared.grad`` into the parameters' gradients."""
        if self.prepared.grad is not None:
            torch.autograd.backward(self._prepared, self.prepared.grad)
        own = self._vectors.grad
        total = sum_ranks(torch.zeros_like(self._vectors) if own is None else own)
        if self._stage is not None:
            self._stage.backward(total[self._places])
