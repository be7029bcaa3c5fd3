"""Gradient cache: the gradient of one big batch in the memory of one chunk (Gao et al., arXiv 2101.06983)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from trainers.common.passes.chunk import Chunk
from trainers.common.passes.groups import Group
from trainers.common.passes.precision import sent

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
