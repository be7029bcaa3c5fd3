"""Trains a run with several seeds, one after the other; a killed run goes on with the seed that it was at."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from batchwright.core.atomic import CHECKSUMS, atomic_dir, faults
from batchwright.core.runtime import scratch
from batchwright.formats.runs import of_seed
from trainers.common.job import TrainJob
from trainers.launch.fit import launch
from trainers.variants import train

_MODEL, _CURVES = "model", "curves"
_SUMS = shutil.ignore_patterns(CHECKSUMS)


def train_seeds(jobs: Sequence[TrainJob]) -> None:
    """Train all ``jobs``, which differ in their seeds, and write the first one's model and curves.

    The models of the others lie in folders of that model. Models appear together, once all are trained.
    """
    first, *further = jobs
    if not further:
        launch(first, train)
        return
    finished = [_finished(job, live=job is first) for job in jobs]
    for curve in (first.curve, first.dev_curve):
        curve.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(finished[0] / _CURVES / curve.name, curve)
    with atomic_dir(first.model) as folder:
        for place, kept in enumerate(finished, start=1):
            shutil.copytree(kept / _MODEL, of_seed(folder, place), ignore=_SUMS, dirs_exist_ok=True)
    for kept in finished:
        shutil.rmtree(kept)


def _finished(job: TrainJob, *, live: bool) -> Path:
    """Train one seed, unless a killed run has done so, and return the folder that keeps its model and curves.

    The curves of one that is ``live`` grow where everybody looks.
    """
    kept = scratch("trained", job.scratch.name).resolve()
    if any(fault for part in (_MODEL, _CURVES) for fault in faults(kept / part)):
        curve = job.curve if live else kept / job.curve.name
        job = replace(job, model=kept / _MODEL, curve=curve)
        launch(job, train)
        with atomic_dir(kept / _CURVES) as folder:
            for name in (job.curve, job.dev_curve):
                shutil.copyfile(name, folder / name.name)
    return kept
