"""Steps of the biencoder and of CDE, beside sentence-transformers on the same batch."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import torch

from benchmarks.gpu.corpus import texts, write_shards, write_start
from benchmarks.gpu.form import Form
from benchmarks.gpu.learning import Trainer, ours, plan, read, theirs
from benchmarks.gpu.machine import Spent, measured
from benchmarks.gpu.matrix import rate
from benchmarks.gpu.table import Result
from trainers.common.train_job import TrainJob

SHARE, FASTER, DEARER = 0.5, 1.3, 1.6
PASSES = 4
"""A gradient cache encodes twice, and a backward pass costs two forward ones."""


def steps(form: Form, folder: Path) -> Iterator[Result]:
    """Measure a step in bfloat16 at each length and batch size, the small ones first."""
    for length, size in product(form.lengths, form.batches):
        shards = write_shards(folder / f"shards-{length}-{size}", 1, size, length)
        start = write_start(folder / f"start-{length}-{size}", form.base, length, texts(shards))
        yield from _compare(form, start, shards, length, size)


def _compare(form: Form, start: Path, shards: Path, length: int, size: int) -> Iterator[Result]:
    setting = f"length {length}, batch {size}"
    chunk = max(form.chunk_tokens // length, 1)
    job = plan("biencoder", start, shards, chunk)
    own = _time(job, ours(job, bf16=True), form)
    yield from _told("biencoder", setting, own, size)
    if own:
        work = PASSES * 2 * size * form.base.operations(length)
        aim = f"at least {SHARE}" if length == max(form.lengths) else ""
        reached = work / own.seconds / rate(form.matrix, torch.bfloat16)
        yield Result("biencoder", setting, "share of the matrix rate", reached, aim)
    library = _time(job, theirs(job, bf16=True), form)
    yield from _told("sentence-transformers", setting, library, size)
    if own and library:
        faster = library.seconds / own.seconds
        yield Result("biencoder", setting, "times as fast as sentence-transformers", faster, f"at least {FASTER}")
    contextual = plan("cde", start, shards, chunk, context_documents=form.context, context_dropout=0)
    with_context = _time(contextual, ours(contextual, bf16=True), form)
    yield from _told("cde", setting, with_context, size)
    if own and with_context:
        yield Result(
            "cde", setting, "times the biencoder's step", with_context.seconds / own.seconds, f"at most {DEARER}"
        )


def _time(job: TrainJob, trainer: Trainer, form: Form) -> Spent | None:
    return measured(partial(trainer.step, trainer.prepare(read(job, 0))), form.repeats)


def _told(part: str, setting: str, spent: Spent | None, size: int) -> Iterator[Result]:
    if spent is None:
        yield Result(part, setting, "memory", "too little")
        return
    yield Result(part, setting, "texts per second", 2 * size / spent.seconds)
    yield Result(part, setting, "MiB", spent.mib)
