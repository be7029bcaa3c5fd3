"""The losses of each variant in float32 and in bfloat16, side by side."""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.gpu.corpus import Form, texts, write_shards, write_start
from benchmarks.gpu.measure import Result, Task, peak_mib, reset_peak
from benchmarks.gpu.training import ours, plan, read

OPTIONS = {
    "cde": {"context_documents": 8, "context_dropout": 0},
    "biencoder": {},
    "seed_encoder": {},
    "xtr": {"k": 256},
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The loss of each step, the median seconds of a step, the peak of memory, and all trained weights."""

    losses: list[float]
    seconds: float
    mib: int
    weights: Tensor


def curves(form: Form, folder: Path, shards: Path | None, start: Path | None) -> Iterator[Task]:
    """Train a small model on ``shards``, or on generated ones, from the model ``start``, or from random weights.

    Nothing is dropped, so that both precisions draw nothing.
    """
    shards = shards or write_shards(folder / "shards", form.steps, form.pairs, form.cut)
    start = start or write_start(folder / "start", form.mini, form.cut, texts(shards))
    for variant in OPTIONS:
        yield Task("training", variant, partial(_compare, form, variant, start, shards))


def _compare(form: Form, variant: str, start: Path, shards: Path) -> Iterator[Result]:
    by_precision = {"float32": _train(form, variant, start, shards, bf16=False)}
    by_precision["bfloat16"] = _train(form, variant, start, shards, bf16=True)
    for step in range(form.steps):
        for name, curve in by_precision.items():
            yield Result("training", f"{variant}, step {step + 1}", f"loss in {name}", curve.losses[step])
    for name, curve in by_precision.items():
        yield Result("training", f"{variant}, {name}", "texts per second", 2 * form.pairs / curve.seconds)
        yield Result("training", f"{variant}, {name}", "MiB", curve.mib)
    again = _train(form, variant, start, shards, bf16=False)
    same = torch.equal(by_precision["float32"].weights, again.weights)
    yield Result("training", f"{variant}, float32", "the same weights again", str(same).lower(), "true")


def _train(form: Form, variant: str, start: Path, shards: Path, *, bf16: bool) -> Curve:
    reset_peak()
    job = plan(variant, start, shards, max(form.chunk_tokens // form.cut, 1), **OPTIONS[variant])
    trainer, losses, seconds = ours(job, bf16=bf16), [], []
    for number in range(form.steps):
        prepared = trainer.prepare(read(job, number))
        began = time.perf_counter()
        losses.append(trainer.step(prepared))  # reading the loss waits for the GPU
        seconds.append(time.perf_counter() - began)
    return Curve(losses=losses, seconds=statistics.median(seconds), mib=peak_mib(), weights=trainer.weights())
