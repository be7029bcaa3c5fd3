"""The biencoder's step with each parameter that may make it faster, beside the step without."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from batchwright.core.errors import InputError
from benchmarks.gpu.corpus import base_start, write_shards
from benchmarks.gpu.form import Form
from benchmarks.gpu.learning import ours, plan, read
from benchmarks.gpu.machine import Spent, measured
from benchmarks.gpu.table import Result
from trainers.common.train_job import TrainJob


def ways(form: Form, folder: Path) -> Iterator[Result]:
    """Measure steps in bfloat16, without dropout, of the shortest texts."""
    length, size = form.sizes[0]
    shards = write_shards(folder / "shards-ways", 1, size, length)
    start = base_start(folder, form, 0, 0)
    job = plan("biencoder", start, shards, max(form.chunk_tokens // length, 1))
    before = _time(job, form)
    for name, value in form.ways:
        common = job.common.model_copy(update={name: value})
        try:
            after = _time(replace(job, common=common), form)
        except InputError as error:
            print(error, file=sys.stderr)
            after = None
        faster = before.seconds / after.seconds if before and after else "impossible"
        setting = f"length {length}, batch {size}, no dropout"
        yield Result("biencoder", setting, f"times as fast with {name}: {str(value).lower()}", faster)


def _time(job: TrainJob, form: Form) -> Spent | None:
    trainer = ours(job, bf16=True)
    return measured(partial(trainer.step, trainer.prepare(read(job, 0))), form.repeats)
