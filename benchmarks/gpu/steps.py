"""Steps of the biencoder and of CDE, beside sentence-transformers on the same batch."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.gpu.corpus import base_start, write_shards
from benchmarks.gpu.form import Form
from benchmarks.gpu.learning import ours, plan, theirs, timed
from benchmarks.gpu.machine import Spent
from benchmarks.gpu.matrix import rate as matrix_rate
from benchmarks.gpu.table import Result
from trainers.common.job import TrainJob

SHARE, FASTER, DEARER = 0.5, 1.3, 1.6
DROPOUT = {"no dropout": 0.0, "dropout .1": 0.1}
PASSES = 4
"""A gradient cache encodes twice, and a backward pass costs two forward ones."""


def steps(form: Form, folder: Path) -> Iterator[Result]:
    """Measure a step in bfloat16 of each size, with dropout and without, and CDE's without."""
    for length, size in form.sizes:
        shards = write_shards(folder / f"shards-{length}-{size}", 1, size, length)
        job = plan("biencoder", base_start(folder, form), shards, max(form.chunk_tokens // length, 1))
        for kind, rate in DROPOUT.items():
            common = job.common.model_copy(update={"dropout": rate})
            yield from _compare(form, replace(job, common=common), length, kind)


def _compare(form: Form, job: TrainJob, length: int, kind: str) -> Iterator[Result]:
    size, setting = job.batch_size, f"length {length}, batch {job.batch_size}, {kind}"
    own = timed(job, ours(job, bf16=True), form)
    yield from _told("biencoder", setting, own, size)
    if own:
        work = PASSES * 2 * size * form.base.operations(length)
        aim = f"at least {SHARE}" if length == max(form.sizes)[0] else ""
        reached = work / own.seconds / matrix_rate(form.matrix, torch.bfloat16)
        yield Result("biencoder", setting, "share of the matrix rate", reached, aim)
    library = timed(job, theirs(job, bf16=True), form)
    yield from _told("sentence-transformers", setting, library, size)
    if own and library:
        faster = library.seconds / own.seconds
        yield Result("biencoder", setting, "times as fast as sentence-transformers", faster, f"at least {FASTER}")
    if not job.common.dropout:
        yield from _contextual(form, job, setting, own)


def _contextual(form: Form, job: TrainJob, setting: str, biencoder: Spent | None) -> Iterator[Result]:
    chunk = job.common.mini_batch_size
    assert chunk != "auto"
    cde = plan("cde", job.start_model, job.shards, chunk, context_documents=form.context, context_dropout=0)
    spent = timed(cde, ours(cde, bf16=True), form)
    yield from _told("cde", setting, spent, job.batch_size)
    if biencoder and spent:
        dearer = spent.seconds / biencoder.seconds
        yield Result("cde", setting, "times the biencoder's step", dearer, f"at most {DEARER}")


def _told(part: str, setting: str, spent: Spent | None, size: int) -> Iterator[Result]:
    if spent is None:
        yield Result(part, setting, "memory", "too little")
        return
    yield Result(part, setting, "texts per second", 2 * size / spent.seconds)
    yield Result(part, setting, "MiB", spent.mib)
