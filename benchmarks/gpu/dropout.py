"""Dropout of rows in one kernel beside the same in many: whether both are equal, and their time."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.gpu.form import Form
from benchmarks.gpu.learning import SEED
from benchmarks.gpu.machine import measured
from benchmarks.gpu.table import Result
from trainers.common.job import training_device
from trainers.common.passes.randomness import seed_start
from trainers.common.passes.row_dropout import drop_plainly, fused_drop

Drop = Callable[[Tensor, Tensor, int, int], Tensor]
SHAPES = ((3, 9), (5, 1030), (5, 7, 768), (4, 12, 63, 63), (4, 12, 128, 128))
DROPPED, NUMBER = 6554, 30


def dropout(form: Form) -> Iterator[Result]:
    """Compare small tensors of several shapes, then time hidden states and attention weights of a chunk of texts."""
    seed_start(SEED)
    fused = fused_drop() if training_device() == "cuda" else None
    for dtype in (torch.float32, torch.bfloat16):
        for shape in SHAPES:
            same = str(_same(fused, shape, dtype)).lower() if fused else "impossible"
            setting = f"{str(dtype).removeprefix('torch.')}, {' x '.join(map(str, shape))}"
            yield Result("dropout", setting, "the same in one kernel", same, "true")
    for length, _ in form.sizes:
        texts = max(form.chunk_tokens // length, 1)
        for shape in ((texts, length, form.base.width), (texts, form.base.heads, length, length)):
            for name, drop in {"plain": drop_plainly, "one kernel": fused}.items():
                spent = measured(partial(_through, drop, *_given(shape, torch.bfloat16)), 5) if drop else None
                setting = f"{name}, {' x '.join(map(str, shape))}"
                yield Result("dropout", setting, "seconds", spent.seconds if spent else "impossible")


def _same(fused: Drop, shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    given = _given(shape, dtype)
    found, expected = _through(fused, *given), _through(drop_plainly, *given)
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def _given(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """An input, keys of its rows, and the gradient at the output."""
    device = training_device()
    generator = torch.Generator(device).manual_seed(0)
    input, gradient = (torch.randn(shape, generator=generator, device=device).to(dtype) for _ in range(2))
    return input.requires_grad_(), torch.arange(shape[0], device=device), gradient


def _through(drop: Drop, input: Tensor, keys: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the output and the gradient at the input."""
    output = drop(input, keys, NUMBER, DROPPED)
    return output.detach(), torch.autograd.grad(output, input, gradient)[0]
