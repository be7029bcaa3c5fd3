"""A training that Ray launches on one worker, beside the same one in this process."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from batchwright.core.files import read_tsv
from batchwright.core.runtime import WORKERS
from batchwright.core.storage import Storage
from batchwright.retrievers.common.model_folder import load_model
from benchmarks.gpu.corpus import Form, texts, write_shards, write_start
from benchmarks.gpu.measure import Result, Task
from benchmarks.gpu.training import plan
from trainers.common.job import TrainJob
from trainers.variants import train

Launch = Callable[[TrainJob], None]


def launched(form: Form, folder: Path) -> Iterator[Task]:
    """Train a small model both ways."""
    yield Task("ray", "biencoder", partial(_compare, form, folder / "launched"))


def _compare(form: Form, folder: Path) -> Iterator[Result]:
    shards = write_shards(folder / "shards", form.steps, form.pairs, form.cut)
    job = plan("biencoder", write_start(folder / "start", form.mini, form.cut, texts(shards)), shards, form.pairs)
    told = partial(Result, "ray", "biencoder")
    ways: dict[str, Launch] = {"this process": train, "a worker of Ray": _with_ray}
    jobs = {way: _in(folder / way, job) for way in ways}
    for way, run in ways.items():
        began = time.perf_counter()
        run(jobs[way])
        yield told(f"seconds in {way}", time.perf_counter() - began)
    losses = [[row["loss"] for row in read_tsv(each.curve, made_by="train")] for each in jobs.values()]
    for way, (*_, last) in zip(ways, losses, strict=True):
        yield told(f"last loss in {way}", float(last))
    here, there = ([float(loss) for loss in curve] for curve in losses)
    yield told("largest difference of a loss", max(abs(a - b) for a, b in zip(here, there, strict=True)))
    weights, others = (load_model(each.model, form.cut, "cpu").state_dict() for each in jobs.values())
    differences = [float((tensor - others[name]).abs().max()) for name, tensor in weights.items()]
    yield told("largest difference of a weight", max(differences))


def _in(folder: Path, job: TrainJob) -> TrainJob:
    folder.mkdir()
    return replace(
        job,
        model=folder / "model",
        curve=folder / "curve.tsv",
        scratch=folder / "scratch",
        storage=Storage.at(folder / "storage"),
    )


def _with_ray(job: TrainJob) -> None:
    from trainers.launch.fit import launch

    job.scratch.mkdir()
    os.environ[WORKERS] = "1"
    launch(job, train)
