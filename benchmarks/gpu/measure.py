"""Time, memory and the rate of matrix products on a GPU or, for tests, on the CPU; and the table of results."""

import gc
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch

from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from benchmarks.gpu.corpus import Form
from trainers.common.job import training_device

PRODUCTS = 20


@dataclass(frozen=True)
class Result:
    """A figure; ``aim`` says what it should be, if anything."""

    part: str
    setting: str
    measure: str
    value: float | int | str
    aim: str = ""


class Table:
    """Prints results as they come, and keeps them in ``file``, with the name of the ``card``."""

    def __init__(self, file: Path, card: str) -> None:
        self._file, self._card = file, card
        self._rows: list[dict[str, float | int | str]] = []

    def add(self, result: Result) -> None:
        """Print and write a result."""
        self._rows.append({"card": self._card, **asdict(result)})
        write_tsv(self._file, self._rows)
        value = f"{result.value:.4g}" if isinstance(result.value, float) else str(result.value)
        aim = f" (aim: {result.aim})" if result.aim else ""
        print(f"{result.part}, {result.setting}: {result.measure} {value}{aim}", flush=True)


def card() -> str:
    """Name of the GPU, or of the processor."""
    return torch.cuda.get_device_name() if training_device() == "cuda" else f"CPU {platform.machine()}"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Median seconds of a step, and MiB at its peak: of the GPU's memory, or of this process without one."""

    seconds: float
    mib: int


def measured(step: Callable[[], object], repeats: int) -> Cost | None:
    """Run ``step`` once to warm up, then ``repeats`` times; None if there is too little of the GPU's memory."""
    gpu = training_device() == "cuda"
    reset_peak()
    seconds = []
    try:
        for _ in range(1 + repeats):
            start = time.perf_counter()
            step()
            if gpu:
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
    except (InputError, torch.OutOfMemoryError):  # a pass of a fixed size says so in words
        torch.cuda.empty_cache()
        return None
    return Cost(seconds=statistics.median(seconds[1:]), mib=peak_mib())


def reset_peak() -> None:
    """Measure the peak of the GPU's memory from now on."""
    gc.collect()  # models before this one are in cycles
    if training_device() == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_mib() -> int:
    """Return the peak of the GPU's memory since ``reset_peak`` or, without one, of this process since it began."""
    if training_device() == "cuda":
        return int(torch.cuda.max_memory_allocated()) // 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10


def precision(bf16: bool) -> torch.autocast:
    """Autocast to bfloat16, or to nothing."""
    return torch.autocast(training_device(), torch.bfloat16, enabled=bf16)


def matrix(form: Form) -> Iterator[Result]:
    """Measure bfloat16 and float32."""
    for dtype in (torch.bfloat16, torch.float32):
        yield Result("matrix", str(dtype).removeprefix("torch."), "TFLOP/s", matrix_rate(form.matrix, dtype) / 1e12)


@cache
def matrix_rate(side: int, dtype: torch.dtype) -> float:
    """Multiplications and additions a second in products of square matrices."""
    left, right = (torch.randn(side, side, device=training_device()).to(dtype) for _ in range(2))

    def multiply() -> None:
        for _ in range(PRODUCTS):
            left @ right

    cost = measured(multiply, 3)
    return 2 * side**3 * PRODUCTS / cost.seconds if cost else 0.0
