"""The biencoder's step with each parameter that may make it faster, beside the step without."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from batchwright.core.errors import InputError
from benchmarks.gpu.corpus import base_start, write_shards
from benchmarks.gpu.form import Form
from benchmarks.gpu.learning import ours, plan, timed
from benchmarks.gpu.table import Result


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
