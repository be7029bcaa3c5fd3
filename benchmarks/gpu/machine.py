"""Time, memory and precision on a GPU or, for tests, on the CPU."""

import gc
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from batchwright.core.errors import InputError
from trainers.common.job import training_device


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Median seconds of a step, and MiB at its peak: of the GPU's memory, or of this process without one."""

    seconds: float
    mib: int


def card() -> str:
    """Name of the GPU, or of the processor."""
    return torch.cuda.get_device_name() if training_device() == "cuda" else f"CPU {platform.machine()}"


def measured(step: Callable[[], object], repeats: int) -> Spent | None:
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
    return Spent(seconds=statistics.median(seconds[1:]), mib=peak_mib())


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
