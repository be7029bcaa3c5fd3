"""Dropout of rows in one Triton kernel, which draws, compares and multiplies at once and keeps no mask."""

from typing import Any

import torch
import triton
from torch import Tensor
from triton import language as tl

from trainers.common.passes.random_bits import GAMMA, LAST, ROUNDS

_GAMMA = tl.constexpr(GAMMA % 2**64)
_SHIFTS = tl.constexpr((*(shift for shift, _ in ROUNDS), LAST))
_FACTORS = tl.constexpr(tuple(factor % 2**64 for _, factor in ROUNDS))
_WORDS = 256
"""Most words, of four numbers each, that a warp draws: eight a thread."""


def drop(input: Tensor, keys: Tensor, number: int, dropped: int) -> Tensor:
    """``trainers.common.passes.row_dropout.drop`` of two to four dimensions, none empty; the bits are the same."""
    found: Tensor = _Drop.apply(input, keys, number, dropped)  # type: ignore[no-untyped-call]
    return found


class _Drop(torch.autograd.Function):
    """Draws anew in the backward pass."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, *draw: Any) -> Tensor:
        ctx.draw = draw
        return _launch(input, *draw)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return drop(gradients[0], *ctx.draw), None, None, None


def _launch(input: Tensor, keys: Tensor, number: int, dropped: int) -> Tensor:
    _, *outer, last = input.shape
    words = -(-last // 4)
    block = min(triton.next_power_of_2(words), _WORDS)
    input = input.contiguous()
    output = torch.empty_like(input)
    with torch.cuda.device_of(input):  # type: ignore[no-untyped-call]
        _drop[input.numel() // last, -(-words // block)](
            input, output, keys.contiguous(), number, *[1, 1, *outer][-2:], last,
            dropped - 2**15, 2**16 / (2**16 - dropped), DEPTH=len(outer), WORDS=block, num_warps=1,
        )  # fmt: skip
    return output


@triton.jit(do_not_specialize=["number", "outer", "inner", "least"])  # type: ignore[untyped-decorator]
def _drop(
    input: tl.tensor, output: tl.tensor, keys: tl.tensor,
    number: int, outer: int, inner: int, last: int, least: int, scale: float,
    DEPTH: tl.constexpr, WORDS: tl.constexpr,
) -> None:  # fmt: skip
    """One block of words of one line, which are the numbers that differ in their last index only."""
    line = tl.program_id(0)
    words, quarters = tl.program_id(1) * WORDS + tl.arange(0, WORDS)[:, None], tl.arange(0, 4)[None, :]
    places = 4 * words + quarters
    offsets = line.to(tl.int64) * last + places
    numbers = tl.load(input + offsets, places < last)  # first, so that drawing hides the wait
    key = _child(tl.load(keys + line // (outer * inner)).to(tl.uint64), number)
    if DEPTH == 2:
        key = _child(key, line // inner % outer)
    if DEPTH >= 1:
        key = _child(key, line % inner)
    bits = (_child(key, words) >> (16 * quarters).to(tl.uint64)).to(tl.int16)
    kept = numbers.to(tl.float32) * (bits >= least).to(tl.float32) * scale
    tl.store(output + offsets, kept.to(numbers.dtype), places < last)


@triton.jit  # type: ignore[untyped-decorator]
def _child(key: tl.tensor, number: tl.tensor) -> tl.tensor:
    """``trainers.common.passes.random_bits.child``, on uint64."""
    key += (number.to(tl.uint64) + 1) * _GAMMA
    key = (key ^ (key >> _SHIFTS[0])) * _FACTORS[0]
    key = (key ^ (key >> _SHIFTS[1])) * _FACTORS[1]
    return key ^ (key >> _SHIFTS[2])
