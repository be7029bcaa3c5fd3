"""How much of a batch a model reads at once, and what it keeps until it backpropagates, for the memory there is."""

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from batchwright.core.errors import InputError
from batchwright.formats.runs import MiniBatchSize

CPU_TOKENS, GPU_TOKENS = 4096, 3 * 2**14
"""How many tokens go through a model at once, unless parameters say how many texts (docs/scale.md)."""
_SPARE = 1.5
"""So many passes must still fit beside those that keep their graphs: one that runs twice, and half of one."""
_MEASURED = 32
"""So many passes are measured, the first ones."""
_TOO_SMALL = "the GPU's memory is too small for mini_batch_size texts at a time; lower it, or set it to auto"
_ONE_TOO_MUCH = "the GPU's memory is too small for one text at a time; lower max_length of the start model"


class Part(Protocol):
    """What goes through a model at once."""

    @property
    def tokens(self) -> int:
        """How many tokens it has, padding included."""

    def halves(self) -> Sequence[Self]:
        """Itself in two, or alone if it is one text."""


P = TypeVar("P", bound=Part)
T = TypeVar("T")


class Memory:
    """At most ``tokens`` tokens go through a model at once.

    If it ``adapts``, passes keep their graphs while memory lasts, so that fewer have to run twice; and when it does not
    last, they lose them, or have half as many tokens from then on.
    """

    def __init__(self, tokens: int, *, adapts: bool = False) -> None:
        self.tokens, self.adapts = tokens, adapts
        self._graphs: dict[Hashable, Tensor] = {}
        self._bytes_per_token: float | None = None
        self._measured, self._settled, self._spare = 0, False, _SPARE
        self._free: float | None = None

    @classmethod
    def of(cls, size: MiniBatchSize, max_length: int, device: str) -> Self:
        """``mini_batch_size`` of texts of ``max_length`` tokens; ``auto`` adapts on a GPU."""
        if size != "auto":
            return cls(size * max_length)
        return cls(GPU_TOKENS, adapts=True) if device == "cuda" else cls(CPU_TOKENS)

    def keeps(self, part: Part) -> bool:
        """Whether ``part`` may keep its graph, beside those that do.

        The first of all passes keeps it, to be measured; others not before the first batch is done, since the optimiser
        takes its memory after that.
        """
        if not self.adapts:
            return False
        if self._bytes_per_token is None:
            return True
        if not self._settled:
            return False
        if self._free is None:
            self._free = free_memory()  # once a batch: it asks the driver
        self._free -= self._bytes_per_token * part.tokens
        return self._free > self._bytes_per_token * self._spare * self.tokens

    def keep(self, key: Hashable, part: Part, run: Callable[[], Tensor]) -> Tensor:
        """Call ``run`` with gradient; keep its graph, for ``spend``, and return the detached result."""
        measures = self._measured < _MEASURED
        before = _allocated() if measures else 0
        with torch.enable_grad():
            self._graphs[key] = output = run()
        if measures:
            used = (_allocated() - before) / max(part.tokens, 1)
            self._bytes_per_token = max(self._bytes_per_token or 0, used)
            self._measured += 1
        return output.detach()

    def spend(self, key: Hashable, gradient: Tensor) -> bool:
        """Backpropagate through the graph that ``keep`` kept; return False if it is not there, or does not fit."""
        self._settled, self._free = True, None
        output = self._graphs.pop(key, None)
        if output is None:
            return False
        try:
            self.backward(output, gradient)
        except torch.OutOfMemoryError as error:
            if self.adapts:
                return False
            raise InputError(_TOO_SMALL) from error
        return True

    def release(self) -> bool:
        """Free all graphs, if memory adapts, and keep fewer from now on; return whether there were any."""
        if not (self.adapts and self._graphs):
            return False
        self._graphs.clear()
        self._spare += 1
        return True

    def through(self, part: P, attempt: Callable[[P], T]) -> list[T]:
        """Call ``attempt`` with ``part`` or, when memory is too small, with its halves; return all results.

        Raises:
            InputError: there is not enough memory for one text, or for ``part`` if memory does not adapt.
        """
        while True:
            try:
                return [attempt(part)]
            except torch.OutOfMemoryError as error:
                if not self.adapts:
                    raise InputError(_TOO_SMALL) from error
            if not self.release():  # not before: the error keeps the attempt's tensors
                break
        halves = part.halves()
        if len(halves) < 2:
            raise InputError(_ONE_TOO_MUCH)
        self.tokens = min(self.tokens, max(half.tokens for half in halves))
        return [result for half in halves for result in self.through(half, attempt)]

    def fit(self, compute: Callable[[], T], least: int) -> T:
        """Call ``compute``, which runs ``tokens`` at once; while memory is too small, halve them, down to ``least``.

        Raises:
            InputError: there is not enough memory even so, or it does not adapt.
        """
        while True:
            try:
                return compute()
            except torch.OutOfMemoryError as error:
                if not self.adapts or self.tokens // 2 < least:
                    raise InputError(_TOO_SMALL if not self.adapts else _ONE_TOO_MUCH) from error
            self.tokens //= 2

    def beside(self, compute: Callable[[], T]) -> T:
        """Call ``compute``; if memory is too small, once more without the graphs that are kept."""
        try:
            return compute()
        except torch.OutOfMemoryError:
            if not self.release():
                raise
        return compute()

    def backward(self, output: Tensor, gradient: Tensor) -> None:
        """Backpropagate; if memory adapts, all gradients are added or, when it is too small, none is."""
        if not self.adapts:
            torch.autograd.backward(output, gradient)
            return
        leaves = _leaves(output)
        found = torch.autograd.grad(output, leaves, gradient, allow_unused=True)
        added = [(leaf, new) for leaf, new in zip(leaves, found, strict=True) if new is not None]
        first = [(leaf, new.clone()) for leaf, new in added if leaf.grad is None]
        if sums := [leaf.grad for leaf, _ in added if leaf.grad is not None]:
            torch._foreach_add_(sums, [new for leaf, new in added if leaf.grad is not None])
        for leaf, new in first:
            leaf.grad = new


def free_memory() -> float:
    """Bytes that torch can still allocate on its GPU; without one, nobody counts them."""
    if not torch.cuda.is_available():
        return sys.maxsize
    reserved = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return float(torch.cuda.mem_get_info()[0] + reserved)


def _allocated() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def _leaves(output: Tensor) -> list[Tensor]:
    """All tensors whose gradients ``output`` would be backpropagated to."""
    nodes: list[Any] = [output.grad_fn]
    seen = set(nodes)
    for node in nodes:
        new = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= new
        nodes.extend(new)
    return [node.variable for node in nodes if hasattr(node, "variable")]
