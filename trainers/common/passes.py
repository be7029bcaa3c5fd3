"""A pass of a model in training: its precision, what it draws, and how many texts it takes at once."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from batchwright.core.errors import InputError
from batchwright.formats.runs import MiniBatchSize, Precision

T = TypeVar("T")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _MOST_KEPT = -1, -3, 1 << 30
CPU_TOKENS = 4096
"""How many tokens go through a model at once on a CPU, unless parameters say how many texts (docs/scale.md)."""


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
                setattr(part, name, rate if "dropout" in name or "pdrop" in name else 0)  # such as whole layers


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
    """Seed all ranks alike before a model is built, and use deterministic kernels where available."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with this
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # filling is slow
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
        added = torch.autograd.grad(outputs, leaves, gradients, allow_unused=True)
        sums = [
            old if new is None else new.clone() if old is None else old + new
            for old, new in zip([leaf.grad for leaf in leaves], added, strict=True)
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
