"""What steps cost: the biencoder's and CDE's beside sentence-transformers', what speeds them up, and XTR's scores."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from batchwright.core.errors import InputError
from benchmarks.gpu.corpus import Form, base_start, write_shards
from benchmarks.gpu.measure import Cost, Result, matrix_rate, measured
from benchmarks.gpu.training import SEED, ours, plan, theirs, timed
from benchmarks.xtr import WAYS, random_texts, score_and_back
from trainers.common.job import TrainJob, training_device
from trainers.common.passes import seed_start

SHARE, FASTER, DEARER = 0.5, 1.3, 1.6
DROPOUT = {"no dropout": 0.0, "dropout .1": 0.1}
PASSES = 4
"""A gradient cache encodes twice, and a backward pass costs two forward ones."""
LARGER = 4


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


def _contextual(form: Form, job: TrainJob, setting: str, biencoder: Cost | None) -> Iterator[Result]:
    chunk = job.common.mini_batch_size
    assert chunk != "auto"
    cde = plan("cde", job.start_model, job.shards, chunk, context_documents=form.context, context_dropout=0)
    cost = timed(cde, ours(cde, bf16=True), form)
    yield from _told("cde", setting, cost, job.batch_size)
    if biencoder and cost:
        dearer = cost.seconds / biencoder.seconds
        yield Result("cde", setting, "times the biencoder's step", dearer, f"at most {DEARER}")


def _told(part: str, setting: str, cost: Cost | None, size: int) -> Iterator[Result]:
    if cost is None:
        yield Result(part, setting, "memory", "too little")
        return
    yield Result(part, setting, "texts per second", 2 * size / cost.seconds)
    yield Result(part, setting, "MiB", cost.mib)


def ways(form: Form, folder: Path) -> Iterator[Result]:
    """Measure steps in bfloat16, without dropout, of the shortest texts."""
    length, size = form.sizes[0]
    shards = write_shards(folder / "shards-ways", 1, size, length)
    start = base_start(folder, form)
    job = plan("biencoder", start, shards, max(form.chunk_tokens // length, 1))
    before = timed(job, ours(job, bf16=True), form)
    for name, value in form.ways:
        changed = replace(job, common=job.common.model_copy(update={name: value}))
        try:
            after = timed(changed, ours(changed, bf16=True), form)
        except InputError as error:
            print(error, file=sys.stderr)
            after = None
        faster = before.seconds / after.seconds if before and after else "impossible"
        setting = f"length {length}, batch {size}, no dropout"
        yield Result("biencoder", setting, f"times as fast with {name}: {str(value).lower()}", faster)


def scores(form: Form) -> Iterator[Result]:
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
