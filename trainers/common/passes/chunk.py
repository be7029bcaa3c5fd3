"""How many texts go through a model at once: a fixed number, or as many as the GPU's memory allows."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from batchwright.core.errors import InputError
from batchwright.formats.runs import MiniBatchSize

T = TypeVar("T")
CPU_TOKENS = 4096
"""How many tokens go through a model at once on a CPU, unless parameters say how many texts (docs/scale.md)."""


class Chunk:
    """At most ``size`` texts go through a model at once.

    If it ``halves``, ``size`` becomes half of what was tried when a GPU's memory is too small, and stays so.
    """

    def __init__(self, size: int, *, halves: bool = False) -> None:
        self.size, self.halves = size, halves

    @classmethod
    def of(cls, size: MiniBatchSize, max_length: int, device: str) -> "Chunk":
        """``mini_batch_size`` of texts of ``max_length`` tokens; on a GPU, ``auto`` begins with all texts at once."""
        if size != "auto":
            return cls(size)
        return cls.whole() if device == "cuda" else cls(max(1, CPU_TOKENS // max_length))

    @classmethod
    def whole(cls) -> "Chunk":
        """Begin with all texts at once."""
        return cls(sys.maxsize, halves=True)

    def fit(self, attempt: Callable[[], T], texts: int) -> T:
        """Call ``attempt``, which runs ``texts`` or as many of them as ``size``, until memory is large enough.

        Raises:
            InputError: there is not enough memory for one text, or for a ``size`` that does not halve.
        """
        while True:
            try:
                return attempt()
            except torch.OutOfMemoryError as error:
                if not self.halves:
                    raise InputError(
                        f"the GPU's memory is too small for {min(self.size, texts)} texts at a time; lower "
                        "mini_batch_size, or set it to auto"
                    ) from error
            self.halve(min(self.size, texts))  # not before: the error keeps the attempt's tensors

    def through(self, texts: int, attempt: Callable[[int], int]) -> None:
        """Call ``attempt`` with the first text to run, counted from 0; it returns the next one, at last ``texts``."""
        start = 0
        while start < texts:
            start = self.fit(partial(attempt, start), texts - start)

    def halve(self, tried: int) -> None:
        """Let ``size`` be at most half of ``tried``.

        Raises:
            InputError: that is no text at all.
        """
        if tried < 2:
            raise InputError(
                "the GPU's memory is too small for one text at a time; lower max_length of the start model"
            )
        self.size = min(self.size, tried // 2)

    def backward(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Backpropagate; if it ``halves``, all gradients are added or, when memory is too small, none is."""
        if not self.halves:
            torch.autograd.backward(outputs, gradients)
            return
        leaves = _leaves(outputs)
        found = torch.autograd.grad(outputs, leaves, gradients, allow_unused=True)
        sums = [
            old if new is None else new.clone() if old is None else old + new
            for old, new in zip([leaf.grad for leaf in leaves], found, strict=True)
        ]
        for leaf, total in zip(leaves, sums, strict=True):
            leaf.grad = total


def _leaves(outputs: Sequence[Tensor]) -> list[Tensor]:
    """All tensors whose gradients ``outputs`` would be backpropagated to."""
    nodes: list[Any] = [each.grad_fn for each in outputs]
    seen = set(nodes)
    for node in nodes:
        new = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= new
        nodes.extend(new)
    return [node.variable for node in nodes if hasattr(node, "variable")]
