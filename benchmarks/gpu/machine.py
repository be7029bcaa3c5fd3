"""What the machine can do at best: launches, copies and matrix products."""

import time
from collections.abc import Callable, Iterator
from functools import cache, partial

import torch

from benchmarks.gpu.corpus import Form
from benchmarks.gpu.measure import Result, Task, measured, seconds_of, wait
from trainers.common.job import training_device

REPEATS = 20


def why(form: Form) -> Iterator[Task]:
    """Measure what bounds a step."""
    yield Task("why", "launches", partial(_launches, form.launches))
    yield Task("why", "copies", partial(_copies, form.copied))
    yield Task("why", "products", partial(_products, form))


def _launches(count: int) -> Iterator[Result]:
    """The host's time to launch kernels of one number, the whole time, and the GPU's time without launches."""
    number = torch.zeros(1, device=training_device())

    def launch() -> None:
        for _ in range(count):
            number.add_(1)

    launch()
    wait()
    start = time.perf_counter()
    launch()
    yield Result("why", "a tiny kernel", "microseconds to launch", 1e6 * (time.perf_counter() - start) / count)
    wait()
    yield Result("why", "a tiny kernel", "microseconds in all", _microseconds(launch, count))
    if training_device() == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        graph.replay()
        yield Result("why", "a tiny kernel", "microseconds in a graph", _microseconds(graph.replay, count))


def _microseconds(run: Callable[[], object], count: int) -> float:
    return 1e6 * min(seconds_of(run) for _ in range(3)) / count


def _copies(size: int) -> Iterator[Result]:
    """Copy within the memory of the GPU, reading and writing, and from the host's."""
    source = torch.randint(256, (size,), dtype=torch.uint8, device=training_device())
    target = torch.empty_like(source)
    if copied := measured(lambda: target.copy_(source), REPEATS):
        yield Result("why", "copies on the device", "TB/s read and written", 2 * size / copied.seconds / 1e12)
    host = torch.empty(max(size // 8, 1), dtype=torch.uint8, pin_memory=training_device() == "cuda")
    if sent := measured(lambda: target[: len(host)].copy_(host, non_blocking=True), REPEATS):
        yield Result("why", "copies from the host", "GB/s", len(host) / sent.seconds / 1e9)


def _products(form: Form) -> Iterator[Result]:
    """Multiply bfloat16 matrices."""
    for size in (*form.products, (form.matrix,) * 3):
        rate = matrix_rate(*size) / 1e12
        yield Result("why", f"bfloat16 products {' x '.join(map(str, size))}", "TFLOP/s", rate)


@cache
def matrix_rate(rows: int, inner: int, columns: int) -> float:
    """Multiplications and additions a second in products of bfloat16 matrices."""
    shapes = (rows, inner), (inner, columns)
    left, right = (torch.randn(shape, device=training_device()).to(torch.bfloat16) for shape in shapes)

    def multiply() -> None:
        for _ in range(REPEATS):
            left @ right

    cost = measured(multiply, 5)
    return 2 * rows * inner * columns * REPEATS / cost.seconds if cost else 0.0
