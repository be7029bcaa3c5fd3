"""Checkpoints in object storage: when they are made, and who goes on with them."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import ray

from batchwright.core.errors import InputError
from batchwright.core.storage import Storage
from tests.train.test_curves import DEV
from tests.train.test_launch import STEPS, job, losses
from tests.train.test_training import content
from trainers.common import step_loop
from trainers.common.distributed import rank
from trainers.common.job import TrainJob
from trainers.common.sentence_learner import SentenceLearner
from trainers.common.step_loop import CheckpointClock
from trainers.launch import fit
from trainers.launch.fit import launch
from trainers.variants import train


@pytest.fixture(autouse=True)
def knobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "0")
    monkeypatch.setattr(step_loop, "SAVE_EVERY_SECONDS", 0.0)


@pytest.mark.parametrize("damaged", [False, True])
def test_another_machine_goes_on_with_what_is_in_the_bucket(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    launch(job(tmp_path, dev=DEV, evaluate_every=2), train)
    whole = content(tmp_path / "out")

    monkeypatch.setenv("BATCHWRIGHT_STORAGE", f"{bucket}/checkpoints")
    steps = count_steps(monkeypatch, last=4)
    with pytest.raises(KeyboardInterrupt):
        launch(job(tmp_path, dev=DEV, evaluate_every=2), train)
    kept = job(tmp_path, dev=DEV, evaluate_every=2).storage
    assert kept.names() == ["checkpoint-000000002", "checkpoint-000000003"]
    if damaged:
        (kept / "checkpoint-000000003" / "checksums.sha256").delete()
    shutil.rmtree(tmp_path / "out")
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "another"))
    launch(job(tmp_path, dev=DEV, evaluate_every=2), train)
    assert len(steps) == 4 + STEPS - (2 if damaged else 3)
    assert content(tmp_path / "out") == whole
    assert kept.names() == []


def count_steps(monkeypatch: pytest.MonkeyPatch, last: int) -> list[int]:
    """Interrupt the step of that number; return what grows with each step."""
    backward, steps = SentenceLearner.backward, list[int]()

    def counted(learner: SentenceLearner, batch: object) -> object:
        steps.append(1)
        if len(steps) == last:
            raise KeyboardInterrupt
        return backward(learner, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(SentenceLearner, "backward", counted)
    return steps


def test_the_clock_strikes_in_time_though_it_is_rarely_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looked = 0.0, 0

    def time() -> float:
        nonlocal looked
        looked += 1
        return now

    monkeypatch.setattr(step_loop.time, "monotonic", time)
    clock, struck = CheckpointClock(120.0, "cpu"), [0.0]
    for step in range(6000):
        now += 0.01 if step == 0 else 0.2 if step < 3000 else 2.0  # a GPU does not wait for its first
        if clock.strikes():
            struck.append(now)
    *others, largest = sorted(after - before for before, after in pairwise(struck))
    assert others[0] > 119 and others[-1] < 126
    assert largest < 400, "late once, when steps became ten times as slow"
    assert now - struck[-1] < 125
    assert looked < 200


@pytest.fixture
def cluster(bucket: str) -> Iterator[None]:
    """Its workers know the bucket, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        ray.init(address="local", num_cpus=2, num_gpus=0, logging_level="ERROR")
        yield
        ray.shutdown()


def dying(work: TrainJob) -> None:
    """Train with a checkpoint after each step, and lose a worker in the fourth."""
    step_loop.SAVE_EVERY_SECONDS = 0.0
    backward, steps = SentenceLearner.backward, list[int]()

    def counted(learner: SentenceLearner, batch: object) -> object:
        steps.append(1)
        if len(steps) == 4 and rank() == 1:
            os._exit(1)
        return backward(learner, batch)  # type: ignore[arg-type]

    SentenceLearner.backward = counted  # type: ignore[assignment, method-assign]
    train(work)


def resumed(work: TrainJob) -> None:
    """Train, and fail if it is from the beginning."""
    assert "checkpoint-000000003" in work.storage.names()
    train(work)


@pytest.mark.slow
def test_a_machine_that_does_not_see_the_folder_says_so(
    tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "2")
    monkeypatch.setattr(fit, "RESTARTS", 0)
    with pytest.raises(InputError, match=r"does not see /nowhere; .*, see docs/scale\.md"):
        launch(replace(job(tmp_path), scratch=Path("/nowhere")), train)


@pytest.mark.slow
def test_a_new_run_goes_on_with_what_ray_train_was_told_of(
    tmp_path: Path, bucket: str, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch(job(tmp_path), train)
    alone = losses(job(tmp_path))

    monkeypatch.setenv("BATCHWRIGHT_STORAGE", bucket)
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "2")
    with monkeypatch.context() as patch, pytest.raises(InputError, match="training failed"):
        patch.setattr(fit, "RESTARTS", 0)
        launch(job(tmp_path), dying)
    kept = job(tmp_path).storage
    with kept.filesystem.open_input_stream(f"{kept.path}/checkpoint_manager_snapshot.json") as file:
        told = json.loads(file.read())["checkpoint_results"]
    assert [each["checkpoint_dir_name"] for each in told][:2] == ["checkpoint-000000001", "checkpoint-000000002"]

    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "another"))
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "1:8")
    launch(job(tmp_path), resumed)
    assert losses(job(tmp_path)) == pytest.approx(alone, rel=1e-3)
    assert Storage.at(bucket).names() == []
