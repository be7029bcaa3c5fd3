"""Gradient cache: the gradient of one big batch in the memory of one chunk (Gao et al., arXiv 2101.06983)."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from batchwright.formats.lengths import length_of
from batchwright.training.batches import TrainBatch
from trainers.common.distributed import gather_objects
from trainers.common.job import TrainJob
from trainers.common.memory import Memory
from trainers.common.packing import pack_texts, packed
from trainers.common.passes import sent, training_pass, weights_cast_once
from trainers.common.texts import Cut, Group, group_texts
from trainers.common.tokenise import Features


class CachedForward:
    """Encodes texts, and later backpropagates a gradient from their embeddings to the encoder's parameters.

    ``encode`` turns a group into a tensor whose first rows are those of its texts; ``output`` holds the rows of all
    texts, detached. Groups that do not fit at once, and whose graphs ``memory`` does not keep, are encoded again in
    ``backward``. ``encode`` must compute the same both times, so what it draws must depend on the group only. If a
    GPU's memory is too small, the groups of this one batch may be halved, and draw anew. ``in_step`` makes equally many
    passes on all ranks, for weights that each gathers from the others.

    To chain two stages, let ``encode`` of the second read a leaf made from the first stage's ``output``. Call the
    second stage's ``backward``, then the first stage's with ``leaf.grad``; one that is not ``trained`` has none.
    """

    def __init__(
        self,
        encode: Callable[[Group], Tensor],
        groups: Sequence[Group],
        memory: Memory,
        *,
        trained: bool = True,
        in_step: bool = False,
    ) -> None:
        self._encode, self.memory, self._trained = encode, memory, trained
        fit = len(groups) == 1 or sum(group.tokens for group in groups) <= memory.tokens
        if in_step:
            groups, fit = _in_step(groups, fit)
        self._at_once = {id(group) for group in groups} if fit else set()
        encoded = [part for group in groups for part in memory.through(group, self._first)]
        self._groups = [group for group, _ in encoded]
        self.output = torch.cat([rows for _, rows in encoded])
        order = np.concatenate([group.places for group in self._groups]).argsort()
        self.output = self.output[sent(order, self.output.device)]

    def backward(self, gradient: Tensor) -> None:
        """Backpropagate ``gradient``, which has the shape of ``output``, into the parameters' gradients."""
        for group in self._groups if self._trained else ():
            rows = gradient[sent(group.places, gradient.device)]
            if not self.memory.spend(self._key(group), rows):
                self.memory.through(group, partial(self._again, gradient))

    def _first(self, group: Group) -> tuple[Group, Tensor]:
        if self._trained and (id(group) in self._at_once or self.memory.keeps(group)):
            return group, self.memory.keep(self._key(group), group, lambda: self._rows(group))
        with torch.no_grad():
            return group, self._rows(group)

    def _again(self, gradient: Tensor, group: Group) -> None:
        self.memory.backward(self._rows(group), gradient[sent(group.places, gradient.device)])

    def _rows(self, group: Group) -> Tensor:
        return self._encode(group)[: len(group.places)]

    def _key(self, group: Group) -> Hashable:
        return id(self), id(group)


def _in_step(groups: Sequence[Group], fit: bool) -> tuple[list[Group], bool]:
    """Add groups without texts until all ranks have as many; return whether all ranks' groups ``fit`` at once."""
    counts, fits = zip(*gather_objects((len(groups), fit)), strict=True)
    idle = [replace(groups[0], places=groups[0].places[:0]) for _ in range(max(counts) - len(groups))]
    return [*groups, *idle], all(fits)


class BatchTexts(NamedTuple):
    """A batch, and its texts on this rank in groups: queries, and documents followed by their hard negatives."""

    batch: TrainBatch
    queries: list[Group]
    documents: list[Group]


class Draws(IntEnum):
    """What dropout is drawn for. A pass draws by the seed, the batch's number, one of these and its first text."""

    TEXTS = 0
    CONTEXT_DOCUMENTS = 1
    CONTEXT = 2


class Passes:
    """Prepares a batch's texts and runs them through a job's ``model`` as the job's parameters say."""

    def __init__(self, job: TrainJob, model: nn.Module, beside: int = 0) -> None:
        """Let transformers in ``model`` read packed texts where that is faster.

        If the model reads ``beside`` vectors beside each text's tokens, texts stay padded.
        """
        self._job, self._beside = job, beside
        self.memory = Memory.of(job.common.mini_batch_size, length_of(job.info.max_length) + beside, job.device)
        self._packed = not beside and gains_by_packing(job) and pack_texts(model)

    @property
    def cut(self) -> Cut:
        """How to cut a side's texts into groups."""
        return Cut.on(self._job.device, self.memory.tokens, packed=self._packed, beside=self._beside)

    def batch(self) -> AbstractContextManager[object]:
        """Run the block's passes on one batch."""
        return weights_cast_once(self._job.device)

    def prepare(
        self, batch: TrainBatch, query: Callable[[list[str]], Features], document: Callable[[list[str]], Features]
    ) -> BatchTexts:
        """Group the rank's texts of a batch; ``query`` and ``document`` make model inputs of them."""
        queries, documents = text_numbers(batch)
        return BatchTexts(
            batch,
            group_texts(query, batch.queries, queries, self.cut),
            group_texts(document, batch.documents + batch.negatives, documents, self.cut),
        )

    def forward(
        self,
        batch: TrainBatch,
        encode: Callable[[Features], Tensor],
        groups: list[Group],
        draws: Draws = Draws.TEXTS,
        *,
        trained: bool = True,
    ) -> CachedForward:
        """Encode groups of the batch's texts; ``encode`` runs the model on a group's inputs."""

        def run(group: Group) -> Tensor:
            with self.training(batch, draws, int(group.numbers[0])), packed(group.packing):
                return encode(group.features)

        device = torch.device(self._job.device)
        on_device, in_step = [group.on(device) for group in groups], self._job.common.fsdp
        return CachedForward(run, on_device, self.memory, trained=trained, in_step=in_step)

    def training(self, batch: TrainBatch, draws: Draws, first: int = 0) -> AbstractContextManager[None]:
        """Run the block's model on a batch's texts from number ``first`` on."""
        job = self._job
        draw = [job.seed, batch.index, draws, first] if job.common.drops else None
        return training_pass(job.common.precision, draw, torch.device(job.device))


def gains_by_packing(job: TrainJob) -> bool:
    """Whether torch has attention for packed texts where the job runs, and nothing is dropped there."""
    common = job.common
    fits = job.device == "cuda" and common.precision == "bfloat16" and not common.drops
    return fits and common.attention == "auto" and not common.fsdp


def text_numbers(batch: TrainBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of the rank's queries, and of its documents and hard negatives, among all texts of the batch.

    Of B rows, row r's query is r, its document B + r, and its hard negatives 2B + r, 3B + r, ...
    """
    rows = np.arange(batch.size)[batch.rows]
    counts = batch.negative_counts[batch.rows]
    nth = np.concatenate([np.arange(0), *(np.arange(count) for count in counts)])
    negatives = (2 + nth) * batch.size + np.repeat(rows, counts)
    return rows, np.concatenate([batch.size + rows, negatives])
