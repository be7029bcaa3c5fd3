"""Gradient cache: the gradient of one big batch in the memory of one chunk (Gao et al., arXiv 2101.06983)."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import IntEnum
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.formats.lengths import length_of
from batchwright.training.batches import TrainBatch
from trainers.common.job import TrainJob
from trainers.common.passes import Chunk, sent, training_pass
from trainers.common.texts import Features, Group, group_texts

T = TypeVar("T")


class CachedForward:
    """Encodes texts, and later backpropagates a gradient from their embeddings to the encoder's parameters.

    ``encode`` turns a group into a tensor with one row per text; ``output`` holds the rows of all texts, detached. More
    texts than the ``chunk``'s size are encoded twice: first without gradient, then in ``backward`` with gradient, at
    most that many at once. ``encode`` must compute the same both times, so what it draws must depend on the group only.
    If the chunk is halved in between, for want of a GPU's memory, the groups of this one batch draw anew.

    To chain two stages, let ``encode`` of the second read a leaf made from the first stage's ``output``. Call the
    second stage's ``backward``, then the first stage's with ``leaf.grad``.
    """

    def __init__(self, encode: Callable[[Group], Tensor], groups: Sequence[Group], chunk: Chunk) -> None:
        self._encode, self._groups, self._chunk = encode, groups, chunk
        self._texts = sum(len(group.places) for group in groups)
        self._attached: list[Tensor] = []
        self.output = torch.cat(chunk.fit(self._forward, self._texts))
        order = np.concatenate([group.places for group in groups]).argsort()
        self.output = self.output[sent(order, self.output.device)]

    def backward(self, gradient: Tensor) -> None:
        """Backpropagate ``gradient``, which has the shape of ``output``, into the parameters' gradients."""
        parts = [gradient[sent(group.places, gradient.device)] for group in self._groups]
        if self._chunk.fit(partial(self._backward_attached, parts), self._texts):
            return
        for group, part in zip(self._groups, parts, strict=True):
            self._chunk.through(len(part), partial(self._backward_from, group, part))

    def release(self) -> bool:
        """Free what the first encoding keeps for ``backward``, if the chunk halves; return whether there was any."""
        if not (self._attached and self._chunk.halves):
            return False
        self._chunk.halve(self._texts)
        self._attached = []
        return True

    def _forward(self) -> list[Tensor]:
        self._size = self._chunk.size
        parts = [part for group in self._groups for part in group.parts(self._size)]
        again = self._texts > self._size and len(parts) > 1
        with torch.set_grad_enabled(not again):
            encoded = [self._encode(part) for part in parts]
        self._attached = [] if again else encoded
        return [part.detach() for part in encoded]

    def _backward_attached(self, gradients: list[Tensor]) -> bool:
        attached, self._attached = self._attached, []  # after an error they are of no use
        if attached and self._chunk.size == self._size:
            self._chunk.backward(attached, gradients)
            return True
        return False

    def _backward_from(self, group: Group, gradient: Tensor, start: int) -> int:
        """Encode texts of ``group`` from ``start`` on again and backpropagate; return where the next ones start."""
        part = group.part(start, self._chunk.size)
        end = start + len(part.places)
        self._chunk.backward([self._encode(part)], [gradient[start:end]])
        return end


def beside(forwards: Sequence[CachedForward], compute: Callable[[], T]) -> T:
    """Call ``compute``; if a GPU's memory is too small, once more without what ``forwards`` keep for ``backward``."""
    try:
        return compute()
    except torch.OutOfMemoryError:
        released = [each.release() for each in forwards]
        if not any(released):
            raise
    return compute()


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
    """Prepares a batch's texts and runs them through a model as a job's parameters say.

    ``most`` is how many of a side's texts to prepare as one group at most.
    """

    def __init__(self, job: TrainJob) -> None:
        longest = length_of(job.info.max_length)
        self._job, self._chunk = job, Chunk.of(job.common.mini_batch_size, longest, job.device)
        self.most = self._chunk.size

    def prepare(
        self, batch: TrainBatch, query: Callable[[list[str]], Features], document: Callable[[list[str]], Features]
    ) -> BatchTexts:
        """Group the rank's texts of a batch; ``query`` and ``document`` make model inputs of them."""
        queries, documents = text_numbers(batch)
        return BatchTexts(
            batch,
            group_texts(query, batch.queries, queries, self.most),
            group_texts(document, batch.documents + batch.negatives, documents, self.most),
        )

    def forward(
        self,
        batch: TrainBatch,
        encode: Callable[[Features], Tensor],
        groups: list[Group],
        draws: Draws = Draws.TEXTS,
    ) -> CachedForward:
        """Encode groups of the batch's texts; ``encode`` runs the model on a group's inputs."""

        def run(group: Group) -> Tensor:
            with self.training(batch, draws, int(group.numbers[0])):
                return encode(group.features)

        return CachedForward(run, groups, self._chunk)

    def training(self, batch: TrainBatch, draws: Draws, first: int = 0) -> AbstractContextManager[None]:
        """Run the block's model on a batch's texts from number ``first`` on."""
        job = self._job
        draw = [job.seed, batch.index, draws, first] if job.common.dropout != 0 else None
        return training_pass(job.common.precision, draw, torch.device(job.device))


def text_numbers(batch: TrainBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of the rank's queries, and of its documents and hard negatives, among all texts of the batch.

    Of B rows, row r's query is r, its document B + r, and its hard negatives 2B + r, 3B + r, ...
    """
    rows = np.arange(batch.size)[batch.rows]
    counts = batch.negative_counts[batch.rows]
    nth = np.concatenate([np.arange(0), *(np.arange(count) for count in counts)])
    negatives = (2 + nth) * batch.size + np.repeat(rows, counts)
    return rows, np.concatenate([batch.size + rows, negatives])
