"""Random bits as a function of keys: no generator, no state, and the same on every device.

The bits are those of SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, 2014), whose
n-th output is a hash of its start and n. A tree of such generators gives every place of an array its own bits.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

GAMMA = 0x9E3779B97F4A7C15 - 2**64
ROUNDS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))
LAST = 31


def children(keys: Tensor, numbers: Tensor) -> Tensor:
    """Keys ``(..., n)`` int64 of the children with ``numbers`` ``(n,)`` int64 of each of ``keys`` ``(...)`` int64."""
    return _mix(keys[..., None] + (numbers + 1) * GAMMA)


def child(keys: Tensor, number: int) -> Tensor:
    """Key ``(...)`` int64 of the child with this ``number`` of each of ``keys`` ``(...)`` int64."""
    step = (number + 1) * GAMMA
    return _mix(keys + ((step + 2**63) % 2**64 - 2**63))


def random_bits(keys: Tensor, shape: Sequence[int]) -> Tensor:
    """Draw 16 bits ``(n, *shape)`` int16 for each place below each of ``keys`` ``(n,)`` int64.

    The bits of a place depend on its key and its indices, not on ``shape``.
    """
    *outer, last = shape
    for size in outer:
        keys = children(keys, torch.arange(size, device=keys.device))
    words = children(keys, torch.arange(-(-last // 4), device=keys.device))
    return words.view(torch.int16)[..., :last]


def _mix(words: Tensor) -> Tensor:
    """SplitMix64's output function, in place."""
    shifted = torch.empty_like(words)
    for shift, factor in ROUNDS:
        _fold(words, shift, shifted).mul_(factor)
    return _fold(words, LAST, shifted)


def _fold(words: Tensor, shift: int, shifted: Tensor) -> Tensor:
    """Add the upper bits of ``words`` to their lower bits, in place."""
    torch.bitwise_right_shift(words, shift, out=shifted)
    return words.bitwise_xor_(shifted.bitwise_and_(2 ** (64 - shift) - 1))  # int64 shifts copy the sign
