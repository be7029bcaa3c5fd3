"""A pass of a model in training: its precision, its kernels, and what it draws."""

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from inspect import get_annotations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from batchwright.formats.runs import Precision

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _MOST_KEPT = -1, -3, 1 << 30


@contextmanager
def training_pass(precision: Precision, draw: Sequence[int] | None, device: torch.device) -> Iterator[None]:
    """Run the block's model in ``precision``; ``draw`` as in ``drawing``, None if nothing is drawn."""
    bfloat16 = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
    with bfloat16, nullcontext() if draw is None else drawing(draw, device):
        yield


def computes_bfloat16(device: str) -> bool:
    """Whether the device has kernels for bfloat16; processors without are some ten times faster in float32."""
    return device != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def weights_cast_once(device: str) -> torch.autocast:
    """Keep the weights that passes inside the block cast to bfloat16, until its end.

    Backpropagate one pass at a time: then each adds its gradients in float32.
    """
    return torch.autocast(device, enabled=False)  # the outermost autocast empties the cache at its end


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
            floats = {name for name, kind in get_annotations(type(part)).items() if kind in (float, "float")}
            for name in dropout_rates(part):
                value = rate if "dropout" in name or "pdrop" in name else 0  # such as whole layers
                setattr(part, name, float(value) if name in floats else value)  # NomicBERT's refuses a whole number


def dropout_rates(part: object) -> dict[str, float]:
    """The rates at which a module, by its attributes or its configuration, drops anything."""
    return {name: value for name, value in vars(part).items() if "drop" in name and type(value) in (int, float)}


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


def seed_start(seed: int) -> None:
    """Seed all ranks alike before a model is built, and use deterministic kernels where available.

    cuDNN's attention is left out: it plans for each new shape of its inputs, and training has new ones in each step.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with this
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # filling is slow
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.manual_seed(seed)


def keep_freed_memory() -> None:
    """Let glibc keep the memory of gradients, which are as large as a static model, for those of the next step.

    Half of a step's time goes by while the system hands out pages. Other C libraries are left as they are.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            mallopt(option, _MOST_KEPT)


def pin_kernels() -> None:
    """Let torch compute with kernels that give the same bits on all x86 processors since AVX2.

    It takes those of the processor otherwise. MKL's common ones are a third as fast, so they are for models whose time
    goes elsewhere. torch and MKL choose at their first operation: what has been computed before is as it was.
    """
    pinned = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "COMPATIBLE"}
    if not torch.cpu._is_avx2_supported():
        return
    before = {name: os.environ.get(name) for name in pinned}
    os.environ.update(pinned)
    torch.ones(8, 8) @ torch.ones(8, 8)
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
