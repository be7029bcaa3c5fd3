"""The largest batches that XTR's scores fit: streaming, and with all similarities at once."""

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.gpu.form import Form
from benchmarks.gpu.learning import SEED
from benchmarks.gpu.machine import Spent, measured
from benchmarks.gpu.table import Result
from benchmarks.xtr import WAYS, random_texts, score_and_back
from trainers.common.job import training_device
from trainers.common.passes import seed_start

LARGER = 4


def scores(form: Form) -> Iterator[Result]:
    """Double the batch until the memory of the GPU is too small, or ``form.most`` is reached."""
    seed_start(SEED)  # kernels as in training
    largest = {}
    for way in ("dense", "streaming"):
        size = form.least
        while size <= form.most and (spent := _score(form, way, size)):
            setting = f"{way}, batch {size}"
            yield Result("xtr", setting, "seconds", spent.seconds)
            yield Result("xtr", setting, "MiB", spent.mib)
            largest[way], size = size, 2 * size
    if len(largest) == 2:
        larger = largest["streaming"] / largest["dense"]
        yield Result("xtr", f"batches up to {form.most}", "times as large as dense", larger, f"at least {LARGER}")


def _score(form: Form, way: str, size: int) -> Spent | None:
    generator = torch.Generator(training_device()).manual_seed(0)
    queries, documents = (random_texts(size, length, generator) for length in form.token_lengths)
    return measured(partial(score_and_back, WAYS[way], queries, documents, form.k), form.repeats)
