"""What XTR's scores need, and how large its batches can be."""

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.gpu.corpus import Form
from benchmarks.gpu.measure import Cost, Result, Task, measured
from benchmarks.gpu.training import SEED
from benchmarks.xtr import WAYS, random_texts, score_and_back
from trainers.common.job import training_device
from trainers.common.passes import seed_start

LARGER = 4


def scores(form: Form) -> Iterator[Task]:
    """Score in batches that double."""
    yield Task("xtr", f"batches up to {form.most}", partial(_double, form))


def _double(form: Form) -> Iterator[Result]:
    """Double the batch until the memory of the GPU is too small, or ``form.most`` is reached."""
    seed_start(SEED)  # kernels as in training
    largest = {}
    for way in ("dense", "streaming"):
        size = form.least
        while size <= form.most and (cost := _score(form, way, size)):
            setting = f"{way}, batch {size}"
            yield Result("xtr", setting, "seconds", cost.seconds)
            yield Result("xtr", setting, "MiB", cost.mib)
            largest[way], size = size, 2 * size
    if len(largest) == 2:
        larger = largest["streaming"] / largest["dense"]
        yield Result("xtr", f"batches up to {form.most}", "times as large as dense", larger, f"at least {LARGER}")


def _score(form: Form, way: str, size: int) -> Cost | None:
    generator = torch.Generator(training_device()).manual_seed(0)
    queries, documents = (random_texts(size, length, generator) for length in form.token_lengths)
    return measured(partial(score_and_back, WAYS[way], queries, documents, form.k), form.repeats)
