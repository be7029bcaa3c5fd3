"""Gradient cache: the gradient of one big batch in the memory of one group (Gao et al., arXiv 2101.06983)."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from trainers.common.passes.groups import Group
from trainers.common.passes.precision import sent


class CachedForward:
    """Encodes texts, and later backpropagates a gradient from their embeddings to the encoder's parameters.

    ``encode`` turns a group into a tensor with one row per text; ``output`` holds the rows of all texts, detached. More
    than ``most`` texts are encoded twice: first without gradient, then in ``backward`` with gradient, group by group.
    ``encode`` must compute the same both times, so dropout must be that of ``RowDropout``.

    To chain two stages, let ``encode`` of the second read a leaf made from the first stage's ``output``. Call the
    second stage's ``backward``, then the first stage's with ``leaf.grad``.
    """

    def __init__(self, encode: Callable[[Group], Tensor], groups: Sequence[Group], most: int) -> None:
        self._encode, self._groups = encode, groups
        self._again = sum(len(group.places) for group in groups) > most
        with torch.set_grad_enabled(not self._again):
            parts = [encode(group) for group in groups]
        self._attached = [] if self._again else parts
        self.output = torch.cat([part.detach() for part in parts])
        order = np.concatenate([group.places for group in groups]).argsort()
        self.output = self.output[sent(order, self.output.device)]

    def backward(self, gradient: Tensor) -> None:
        """Backpropagate ``gradient``, which has the shape of ``output``, into the parameters' gradients."""
        parts = [gradient[sent(group.places, gradient.device)] for group in self._groups]
        if not self._again:
            torch.autograd.backward(self._attached, parts)
            return
        for group, part in zip(self._groups, parts, strict=True):
            torch.autograd.backward(self._encode(group), part)
