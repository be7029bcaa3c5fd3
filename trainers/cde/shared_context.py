"""The context that all texts of a batch share, computed by all ranks together."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from trainers.common.batches import TrainBatch
from trainers.common.distributed import rank, sum_ranks
from trainers.common.gradient_cache import CachedForward

Features = dict[str, Any]


class SharedContext:
    """Stage 1 on J of a batch's documents, all of them where it has fewer.

    A rank embeds those among its own rows. ``prepared`` is what stage 2 needs of everybody's; it leaves its gradient
    there, and ``backward`` sends the sum over ranks back.
    """

    def __init__(
        self,
        encoder: ContextualEncoder,
        batch: TrainBatch,
        split: Callable[[list[str]], list[Features]],
        null_share: float,
        rng: np.random.Generator,
    ) -> None:
        """``split`` makes texts chunks of model inputs; ``rng`` draws the same on all ranks."""
        chosen = rng.permutation(batch.size)[: encoder.documents]
        null = torch.from_numpy(rng.random(len(chosen)) < null_share).to(encoder.null.device)
        place_of_row = {row: place for place, row in enumerate(range(batch.size)[batch.rows])}
        self._places = [place for place, row in enumerate(chosen.tolist()) if row in place_of_row]
        texts = [batch.documents[place_of_row[int(chosen[place])]] for place in self._places]
        self._stage = CachedForward(encoder.embed_context, split(texts)) if texts else None
        vectors = encoder.null.new_zeros(len(chosen), len(encoder.null))
        if self._stage is not None:
            vectors[self._places] = self._stage.output
        self._vectors = sum_ranks(vectors.detach()).requires_grad_()
        self._prepared = encoder.prepare(self._vectors, null)
        self.prepared = self._prepared.detach().requires_grad_()

    def backward(self) -> None:
        """Add what ``prepared.grad`` means for the parameters."""
        gradient = sum_ranks(torch.zeros_like(self.prepared) if self.prepared.grad is None else self.prepared.grad)
        # What follows ``prepared`` is the same on all ranks, whose gradients are summed: one of them goes back there.
        if rank() == 0 and self._prepared.requires_grad:
            torch.autograd.backward(self._prepared, gradient)
        own = self._vectors.grad
        total = sum_ranks(torch.zeros_like(self._vectors) if own is None else own)
        if self._stage is not None:
            self._stage.backward(total[self._places])
