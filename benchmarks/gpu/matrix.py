"""The rate of matrix products, which no training can exceed."""

from collections.abc import Iterator
from functools import cache

import torch

from benchmarks.gpu.form import Form
from benchmarks.gpu.machine import measured
from benchmarks.gpu.table import Result
from trainers.common.job import training_device

PRODUCTS = 20


@cache
def rate(side: int, dtype: torch.dtype) -> float:
    """Multiplications and additions a second in products of square matrices."""
    left, right = (torch.randn(side, side, device=training_device()).to(dtype) for _ in range(2))

    def multiply() -> None:
        for _ in range(PRODUCTS):
            left @ right

    spent = measured(multiply, 3)
    return 2 * side**3 * PRODUCTS / spent.seconds if spent else 0.0


def matrix(form: Form) -> Iterator[Result]:
    """Measure bfloat16 and float32."""
    for dtype in (torch.bfloat16, torch.float32):
        yield Result("matrix", str(dtype).removeprefix("torch."), "TFLOP/s", rate(form.matrix, dtype) / 1e12)
