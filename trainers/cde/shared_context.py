"""The context that all texts of a batch share, computed by all ranks together."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.training.batches import TrainBatch
from trainers.common.distributed import rank, sum_ranks
from trainers.common.gradient_cache import CachedForward

Features = dict[str, Any]


class SharedContext:
    """Runs stage 1 on J of a batch's documents, or on all of them if it has fewer.

    Each rank embeds the chosen documents among its own rows. ``prepared`` is what stage 2 reads, computed from the
    context vectors of all ranks; every rank gets that of rank 0, because each draws another dropout. Stage 2 leaves its
    gradient in ``prepared.grad``; ``backward`` sums that over ranks and backpropagates it.
    """

    def __init__(
        self,
        encoder: ContextualEncoder,
        batch: TrainBatch,
        split: Callable[[list[str]], list[Features]],
        rng: np.random.Generator,
    ) -> None:
        """``split`` turns texts into chunks of stage 1's inputs; ``rng`` must draw the same numbers on all ranks."""
        chosen = rng.permutation(batch.size)[: encoder.documents]
        place_of_row = {row: place for place, row in enumerate(range(batch.size)[batch.rows])}
        self._places = [place for place, row in enumerate(chosen.tolist()) if row in place_of_row]
        texts = [batch.documents[place_of_row[int(chosen[place])]] for place in self._places]
        self._stage = CachedForward(encoder.embed_context, split(texts)) if texts else None
        vectors = encoder.gate.new_zeros(len(chosen), encoder.backbone.config.hidden_size)
        if self._stage is not None:
            vectors[self._places] = self._stage.output
        self._vectors = sum_ranks(vectors).requires_grad_()
        self._prepared = encoder.prepare(self._vectors)
        first = self._prepared.detach()
        self.prepared = sum_ranks(first if rank() == 0 else torch.zeros_like(first)).requires_grad_()

    def backward(self) -> None:
        """Backpropagate ``prepared.grad`` into the parameters' gradients."""
        gradient = sum_ranks(torch.zeros_like(self.prepared) if self.prepared.grad is None else self.prepared.grad)
        # All ranks read what rank 0 prepared, and their parameter gradients are summed later: only rank 0 goes back.
        if rank() == 0:
            torch.autograd.backward(self._prepared, gradient)
        own = self._vectors.grad
        total = sum_ranks(torch.zeros_like(self._vectors) if own is None else own)
        if self._stage is not None:
            self._stage.backward(total[self._places])
