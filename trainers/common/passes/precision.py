"""A pass of a model in training: in its precision, and with dropout that belongs to rows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.formats.runs import Precision
from trainers.common.passes.row_dropout import RowDropout


@contextmanager
def training_pass(
    precision: Precision, seed: Sequence[int], rows: Tensor | None, device: torch.device
) -> Iterator[None]:
    """Run the block's model in ``precision``; ``seed`` and ``rows`` as in ``RowDropout``, None if nothing is dropped.

    Each pass casts the weights anew, so that their gradients are summed in float32.
    """
    bfloat16 = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
    with bfloat16, nullcontext() if rows is None else RowDropout(seed, send(rows, device)):
        yield


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on ``device``. GPUs copy pinned memory by themselves, so nobody waits until it is there."""
    far = device.type == "cuda" and tensor.device.type == "cpu"
    return (tensor.pin_memory() if far else tensor).to(device, non_blocking=True)


def sent(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on ``device``; see ``send``."""
    return send(torch.from_numpy(array), device)


def placed(features: dict[str, object], device: torch.device) -> dict[str, object]:
    """Model inputs on ``device``; see ``send``."""
    return {key: send(each, device) if isinstance(each, Tensor) else each for key, each in features.items()}


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """Let GPUs round the factors of float32 products inside the block, or not."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
