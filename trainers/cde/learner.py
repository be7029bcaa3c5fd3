"""Trains CDE with a gradient cache over both stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import nn

from batchwright.formats.models import SIDES
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.retriever import save_contextual
from batchwright.training.batches import TrainBatch
from batchwright.training.losses import Outcome, objective_of
from trainers.cde.start import Params, start_from
from trainers.common.dimensions import check_dimensions
from trainers.common.distributed import sum_ranks
from trainers.common.gradient_cache import BatchTexts, Draws, Passes
from trainers.common.job import TrainJob
from trainers.common.passes import sent
from trainers.common.sentence_learner import contrast_batch, embed
from trainers.common.texts import Cut, Group, group_texts
from trainers.common.tokenise import Features, Tokenise


@dataclass(frozen=True)
class ContextTexts:
    """The J ``count`` context documents of a batch: ``places`` are those of this rank, in ``groups``.

    ``null`` ``(count,)`` bool marks those that the null vector of a sequence replaces.
    """

    count: int
    places: list[int]
    groups: list[Group]
    null: NDArray[np.bool_]

    @classmethod
    def choose(
        cls,
        batch: TrainBatch,
        documents: int,
        preprocess: Callable[[list[str]], Features],
        cut: Cut,
        rng: np.random.Generator,
        null_share: float = 0,
    ) -> Self:
        """Choose ``documents`` of a batch's documents, or all if it has fewer, with the same ``rng`` on all ranks."""
        chosen = rng.permutation(batch.size)[:documents]
        place_of_row = {row: place for place, row in enumerate(range(batch.size)[batch.rows])}
        places = [place for place, row in enumerate(chosen.tolist()) if row in place_of_row]
        texts = [batch.documents[place_of_row[int(chosen[place])]] for place in places]
        groups = group_texts(preprocess, texts, chosen[places], replace(cut, beside=0))
        return cls(len(chosen), places, groups, rng.random(len(chosen)) < null_share)


class SharedContext:
    """Runs stage 1 on a batch's context documents: each rank embeds those among its own rows.

    ``prepared`` is what stage 2 reads, computed by every rank from the context vectors of all ranks. Stage 2 leaves its
    gradient in ``prepared.grad``; ``backward`` backpropagates it, and sums it over ranks at the context vectors, as far
    as stage 1 is ``trained``.
    """

    def __init__(
        self,
        passes: Passes,
        encoder: ContextualEncoder,
        batch: TrainBatch,
        texts: ContextTexts,
        *,
        trained: bool = True,
    ) -> None:
        device = encoder.backbone.device
        self._places = sent(np.array(texts.places, np.int64), device)
        self._stage = (
            passes.forward(
                batch,
                lambda each: encoder.embed_context(each).float(),
                texts.groups,
                Draws.CONTEXT_DOCUMENTS,
                trained=trained,
            )
            if texts.groups
            else None
        )
        vectors = torch.zeros(texts.count, encoder.backbone.config.hidden_size, device=device)
        if self._stage is not None:
            vectors[self._places] = self._stage.output
        self._vectors = sum_ranks(vectors).requires_grad_()
        with passes.training(batch, Draws.CONTEXT):
            self._prepared = encoder.prepare(self._vectors, sent(texts.null, device)).float()
        self.prepared = self._prepared.detach().requires_grad_()

    def backward(self) -> None:
        """Backpropagate ``prepared.grad`` into the parameters' gradients."""
        if self.prepared.grad is not None:
            torch.autograd.backward(self._prepared, self.prepared.grad)
        own = self._vectors.grad
        total = sum_ranks(torch.zeros_like(self._vectors) if own is None else own)
        if self._stage is not None:
            self._stage.backward(total[self._places])


class ContextualLearner:
    """A ``trainers.common.run.Learner`` for a two-stage encoder.

    The queries and documents of a batch share one context: J of the batch's documents, or all of them if it has fewer.
    """

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._params = cast(Params, job.params)
        self.encoder: ContextualEncoder = start_from(job.start_model, self._params, job.info, *job.models).to(
            job.device
        )
        self.model = SentenceTransformer(modules=[self.encoder], device=job.device)
        check_dimensions(job, self.model)
        self._sequence = self.encoder.form == "sequence"
        self._passes = Passes(job, self.model, self.encoder.before)
        self._tokenise, self._tokenise_context = Tokenise(self.model), Tokenise(self.encoder.first)
        self.fresh: Sequence[nn.Parameter] = [] if job.info.variant == "cde" else self.encoder.new_parameters()

    def prepare(self, batch: TrainBatch) -> tuple[BatchTexts, ContextTexts | None]:
        """See ``Learner``; a share of the batches is read without context: with a sequence, with null vectors only."""
        texts = self._passes.prepare(batch, *(partial(self._tokenise, side=side) for side in SIDES))
        rng = np.random.default_rng([self._job.seed, batch.index])
        params, documents = self._params, self.encoder.documents
        dropped = rng.random() < params.context_dropout
        if not documents or (dropped and not self._sequence):
            return texts, None
        tokenise = partial(self._tokenise_context, side="document")
        count = 0 if dropped else documents
        return texts, ContextTexts.choose(batch, count, tokenise, self._passes.cut, rng, params.null_share)

    def backward(self, prepared: tuple[BatchTexts, ContextTexts | None]) -> Outcome:
        """See ``Learner``; uses the paper's two-stage gradient cache.

        The loss gives the gradient at the embeddings. Stage 2 then runs again and collects the gradient at the context,
        over the texts of all ranks. Finally, stage 1 runs again with that gradient.
        """
        (batch, *sides), chosen = prepared
        with self._passes.batch():
            trained = self._params.first_stage_gradient
            context = SharedContext(self._passes, self.encoder, batch, chosen, trained=trained) if chosen else None
            memory = context.prepared if context else None
            queries, documents = (
                self._passes.forward(batch, lambda each: embed(self.model, {**each, "context": memory}), groups)
                for groups in sides
            )
            common = self._job.common
            outcome = contrast_batch(
                queries, documents, batch, self._params.temperature, objective_of(common), common.dimension_weights
            )
            if context:
                context.backward()
        return outcome

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder that contains the model's code."""
        save_contextual(self.model, folder, self._job.info.prefixes.default)
