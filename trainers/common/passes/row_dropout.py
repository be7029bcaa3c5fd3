"""Dropout that belongs to rows: what it drops from a text depends neither on its company nor on padding."""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from trainers.common.passes.random_bits import child, children, random_bits

_SHARED = -1


class RowDropout(TorchFunctionMode):
    """Inside this context, dropout and the dropout of attention draw their masks from a hash instead of a generator.

    The hash is of ``seed``, of how many dropouts the context has applied before, of the row's number, and of the place
    in the row. So a second pass of the same rows drops the same, in whatever company they are. ``rows`` ``(n,)`` int64
    are the numbers of the rows: the first dimension of what is dropped from. A tensor without that dimension is shared
    by all rows, and dropped from alike for all. Rates are rounded to 1/65536.
    """

    def __init__(self, seed: Sequence[int], rows: Tensor) -> None:
        super().__init__()
        root = np.random.SeedSequence(seed).generate_state(1, np.uint64).view(np.int64)
        self._root = torch.full((), int(root[0]), device=rows.device)
        self._rows, self._applied = children(self._root, rows), 0
        self._ours = {functional.dropout: self._dropout, functional.scaled_dot_product_attention: self._attention}

    def __torch_function__(self, function: Any, _types: Any, arguments: Any = (), options: Any = None) -> Any:
        """Call ``function``, or what replaces it."""
        return self._ours.get(function, function)(*arguments, **(options or {}))

    def _dropout(self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: ARG002
        """``torch.nn.functional.dropout``."""
        if not training or p == 0:
            return input
        dropped = min(round(p * 2**16), 2**16 - 1)
        own, number = len(input) == len(self._rows), self._applied
        self._applied += 1
        if own:
            return drop(input, self._rows, number, dropped)
        return drop(input[None], child(self._root, _SHARED)[None], number, dropped)[0]

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """``torch.nn.functional.scaled_dot_product_attention``, which draws inside its kernels."""
        if dropout_p == 0:
            return functional.scaled_dot_product_attention(
                query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
            )
        if enable_gqa:
            key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
        scores = query * (scale or query.shape[-1] ** -0.5) @ key.mT
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None:
            hidden = attn_mask.dtype == torch.bool
            scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min) if hidden else scores + attn_mask
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(value.dtype)
        return self._dropout(weights, dropout_p) @ value


def drop(input: Tensor, keys: Tensor, number: int, dropped: int) -> Tensor:
    """Drop ``dropped`` of 65536 of ``input`` ``(n, ...)``, as the ``number``-th dropout of rows with ``keys`` ``(n,)``.

    On a GPU one kernel does it, if Triton and the C compiler that it needs are there.
    """
    if fits(input) and (fused := fused_drop()):
        return fused(input, keys, number, dropped)
    return drop_plainly(input, keys, number, dropped)


def fits(input: Tensor) -> bool:
    """Whether the kernel takes ``input``."""
    known = input.is_floating_point() and input.element_size() <= 4
    return input.is_cuda and known and 2 <= input.dim() <= 4 and input.numel() > 0


def drop_plainly(input: Tensor, keys: Tensor, number: int, dropped: int) -> Tensor:
    """Do what ``drop`` does, one operation after the other."""
    bits = random_bits(child(keys, number), input.shape[1:])
    return input * bits.ge(dropped - 2**15) * (2**16 / (2**16 - dropped))


@cache
def fused_drop() -> Callable[[Tensor, Tensor, int, int], Tensor] | None:
    """Return ``drop`` in one kernel, if that runs here."""
    try:
        fused = import_module("trainers.common.passes.fused_dropout")
        keys = torch.zeros(1, dtype=torch.int64, device="cuda")
        for shape in ((1, 1), (1, 1, 1), (1, 1, 1, 1)):  # each has a kernel of its own
            fused.drop(torch.ones(shape, device="cuda"), keys, 0, 1)
    except torch.OutOfMemoryError:
        raise  # fewer texts at once help, and then Triton is asked again
    except Exception as error:  # Triton, its compiler and its driver raise errors of many kinds
        print(f"warning: dropout takes longer, since Triton does not run: {error}", file=sys.stderr)
        return None
    return cast(Callable[[Tensor, Tensor, int, int], Tensor], fused.drop)
