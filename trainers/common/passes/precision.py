"""A pass of a model in training: in its precision, and with dropout that a second pass repeats."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from batchwright.formats.runs import Precision


@contextmanager
def training_pass(precision: Precision, draw: Sequence[int] | None, device: torch.device) -> Iterator[None]:
    """Run the block's model in ``precision``; ``draw`` as in ``drawing``, None if nothing is drawn.

    Each pass casts the weights anew, so that their gradients are summed in float32.
    """
    bfloat16 = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
    with bfloat16, nullcontext() if draw is None else drawing(draw, device):
        yield


@contextmanager
def drawing(seed: Sequence[int], device: torch.device) -> Iterator[None]:
    """Start torch's generators at ``seed`` for the length of the block, and leave them as they were."""
    number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        torch.default_generator.manual_seed(number)
        if on_gpu:
            torch.cuda.manual_seed(number)
        yield


def set_dropout(model: nn.Module, rate: float | None) -> None:
    """Let ``model`` drop at ``rate`` wherever it drops, and say so in its configurations; None leaves it as it is."""
    if rate is None:
        return
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        for part in (module, module.config) if isinstance(module, PreTrainedModel) else (module,):
            for name in dropout_rates(part):
                setattr(part, name, rate)


def dropout_rates(part: object) -> dict[str, float]:
    """The rates of dropout among the attributes of a module or of its configuration."""
    return {
        name: value
        for name, value in vars(part).items()
        if ("dropout" in name or "pdrop" in name) and type(value) in (int, float)
    }


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
