"""Gradient cache: the gradient of one big batch in the memory of one chunk (Gao et al., arXiv 2101.06983)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from torch import Tensor

Inputs = TypeVar("Inputs")


class CachedForward(Generic[Inputs]):
    """Encodes ``chunks``, and later backpropagates a gradient from their embeddings to the encoder's parameters.

    ``encode`` turns a chunk into a tensor with one row per text; ``output`` holds all rows, detached. Several chunks
    are encoded twice: first without gradient, then in ``backward`` with gradient and the same random state, so that
    dropout repeats. A single chunk is encoded once.

    To chain two stages, let ``encode`` of the second read a leaf made from the first stage's ``output``. Call the
    second stage's ``backward``, then the first stage's with ``leaf.grad``.
    """

    def __init__(self, encode: Callable[[Inputs], Tensor], chunks: Sequence[Inputs]) -> None:
        self._encode = encode
        self._chunks = chunks
        self._random: list[_RandomState] = []
        self._attached = encode(chunks[0]) if len(chunks) == 1 else None
        self._sizes: list[int] = []
        self.output = self._attached.detach() if self._attached is not None else self._forward()

    def backward(self, gradient: Tensor) -> None:
        """Backpropagate ``gradient``, which has the shape of ``output``, into the parameters' gradients."""
        if self._attached is not None:
            torch.autograd.backward(self._attached, gradient)
            return
        parts = torch.split(gradient, self._sizes)
        for chunk, random, part in zip(self._chunks, self._random, parts, strict=True):
            with random.replayed():
                torch.autograd.backward(self._encode(chunk), part)

    def _forward(self) -> Tensor:
        outputs = []
        with torch.no_grad():
            for chunk in self._chunks:
                self._random.append(_RandomState())
                outputs.append(self._encode(chunk))
        self._sizes = [len(output) for output in outputs]
        return torch.cat(outputs)


class _RandomState:
    """A snapshot of the random generators on the CPU and the current GPU."""

    def __init__(self) -> None:
        self._cpu = torch.get_rng_state()
        self._gpu = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Run the block from this state, and restore the current state afterwards."""
        with torch.random.fork_rng(devices=[] if self._gpu is None else [torch.cuda.current_device()]):
            torch.set_rng_state(self._cpu)
            if self._gpu is not None:
                torch.cuda.set_rng_state(self._gpu)
            yield
