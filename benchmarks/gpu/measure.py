"""Time and memory on a GPU or, for tests, on the CPU; what is measured as tasks, and the table of results."""

import gc
import platform
import resource
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from trainers.common.job import training_device


@dataclass(frozen=True)
class Result:
    """A figure; ``aim`` says what it should be, if anything."""

    part: str
    setting: str
    measure: str
    value: float | int | str
    aim: str = ""


@dataclass(frozen=True)
class Task:
    """What is begun only while there is time: it measures a ``part`` in a ``setting``."""

    part: str
    setting: str
    run: Callable[[], Iterator[Result]]

    def results(self) -> Iterator[Result]:
        """Measure; an error is a result, too, so that the tasks after it are done."""
        try:
            yield from self.run()
        except Exception as error:
            yield failure(self.part, self.setting, error)


def failure(part: str, setting: str, error: Exception) -> Result:
    """Say what went wrong, and write where to standard error."""
    if isinstance(error, torch.OutOfMemoryError):
        return Result(part, setting, "memory", "too little")
    traceback.print_exception(error)
    return Result(part, setting, "failed", " ".join(f"{type(error).__name__}: {error}".split())[:200])


class Table:
    """Prints results as they come, and keeps them in ``file``, with the name of the ``card`` and the ``commit``."""

    def __init__(self, file: Path, card: str, commit: str) -> None:
        self._file, self._card, self._commit = file, card, commit
        self._rows: list[dict[str, float | int | str]] = []

    def add(self, result: Result) -> None:
        """Print and write a result."""
        self._rows.append({"card": self._card, "commit": self._commit, **asdict(result)})
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
    reset_peak()
    seconds = []
    try:
        for _ in range(1 + repeats):
            seconds.append(seconds_of(step))
    except (InputError, torch.OutOfMemoryError):  # a pass of a fixed size says so in words
        torch.cuda.empty_cache()
        return None
    return Cost(seconds=statistics.median(seconds[1:]), mib=peak_mib())


def seconds_of(step: Callable[[], object]) -> float:
    """Run ``step`` until the GPU has done its work, too."""
    wait()
    start = time.perf_counter()
    step()
    wait()
    return time.perf_counter() - start


def wait() -> None:
    """Wait for the GPU."""
    if training_device() == "cuda":
        torch.cuda.synchronize()


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


def allocated_mib() -> int:
    """Return what tensors hold of the GPU's memory now; 0 without one."""
    return int(torch.cuda.memory_allocated()) // 2**20 if training_device() == "cuda" else 0


def allocation_retries() -> int:
    """Return how often cached memory had to be freed for an allocation, so far."""
    return int(torch.cuda.memory_stats()["num_alloc_retries"]) if training_device() == "cuda" else 0
