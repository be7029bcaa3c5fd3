"""``python -m benchmarks.gpu``, in its small form on the CPU."""

import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch.utils.flop_counter import FlopCounterMode

from batchwright.core.files import read_tsv
from benchmarks.gpu import __main__ as command
from benchmarks.gpu import measure, scores, steps
from benchmarks.gpu.corpus import SMALL, Form, texts, write_shards, write_start
from benchmarks.gpu.launched import launched
from benchmarks.gpu.lengths import KEPT, Lengths
from benchmarks.gpu.measure import Result, Task
from benchmarks.gpu.profiles import covered
from benchmarks.gpu.steps import OURS, THEIRS, settings
from benchmarks.gpu.training import Trainer, ours, plan, read, theirs
from tests.helpers import run_python
from trainers.common.job import TrainJob

WITHOUT = """
import runpy, sys
for name in ("ray", "faiss", "apache_beam", "dvc", "tensorboardX"):
    sys.modules[name] = None
runpy.run_module("benchmarks.gpu", run_name="__main__", alter_sys=True)
"""


def test_everything_is_measured_without_the_packages_that_a_gpu_machine_may_lack(tmp_path: Path, warm: Path) -> None:
    line = ("--small", "--output", "gpu.tsv", "--commit", "abc")
    done = run_python("-c", WITHOUT, *line, cwd=tmp_path, programs=warm, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    rows = read_tsv(tmp_path / "gpu.tsv", made_by="benchmarks.gpu")
    assert len(done.stdout.splitlines()) == len(rows)
    found = defaultdict(dict)
    for row in rows:
        assert row["card"].startswith("CPU ") and row["commit"] == "abc"
        assert row["measure"] != "failed", row
        if row["measure"] == "the same weights again":
            assert row["value"] == "true"
            continue
        assert float(row["value"]) > 0 or row["measure"] == "retries of allocations"
        found[row["part"], row["measure"]][row["setting"]] = float(row["value"])
    for setting in settings(SMALL):
        for contender in setting.contenders:
            assert found[contender, "timed steps"][setting.title] == SMALL.timed
            assert found[contender, "MiB"][setting.title] > 0
    assert {each.split(":")[0] for each in found[OURS, f"times as fast as {THEIRS}"]} >= {"mixed", "equal", "long"}
    assert {each.split(":")[0] for each in found["cde, auto", "times the biencoder's step"]} >= {"equal", "mixed"}
    assert {"TFLOP/s", "microseconds to launch"} <= {measure for part, measure in found if part == "why"}
    assert found["xtr", "times as large as dense"] == {"batches up to 16": 1}
    single, half = found["training", "loss in float32"], found["training", "loss in bfloat16"]
    assert set(single) == set(half) and len(single) == 4 * SMALL.steps
    assert all(math.isclose(half[step], single[step], rel_tol=0.1) for step in single)
    assert half != single
    aims = {row["aim"] for row in rows} - {""}
    assert aims == {"at least 1.3", "at most 1.55", "at least 4", "true"}
    profile = read_tsv(tmp_path / "gpu-profile.tsv", made_by="benchmarks.gpu")
    assert len({row["setting"] for row in profile}) == 4
    assert all(int(row["calls"]) > 0 for row in profile)
    assert {entry.name for entry in tmp_path.iterdir()} == {"gpu.tsv", "gpu-profile.tsv"}


@pytest.fixture
def start(tmp_path: Path) -> tuple[Path, Path]:
    """Shards of two batches and a model."""
    shards = write_shards(tmp_path / "shards", 2, 8, 8)
    return write_start(tmp_path / "start", SMALL.base, 8, texts(shards)), shards


def test_texts_fill_their_length(start: tuple[Path, Path]) -> None:
    model = SentenceTransformer(str(start[0]), device="cpu")
    found = model.preprocess([*texts(start[1])])
    assert found["attention_mask"].shape == (32, 8)
    assert found["attention_mask"].all()
    assert (found["input_ids"] != 1).all()  # no word is unknown


def test_operations_are_those_that_torch_counts(start: tuple[Path, Path]) -> None:
    model = SentenceTransformer(str(start[0]), device="cpu", model_kwargs={"attn_implementation": "eager"})
    features = model.preprocess([*texts(start[1])][:3])
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model[0].model.encoder(model[0].model.embeddings(features["input_ids"]))
    assert counted.get_total_flops() == 3 * SMALL.base.operations(8)


def test_both_train_on_the_same_loss_if_nothing_is_masked(start: tuple[Path, Path]) -> None:
    job = plan("biencoder", *start, 4)
    batch = read(job, 0)
    batch.masked[:] = False
    trainers = ours(job, bf16=False), theirs(job, bf16=False)
    losses = [[each.step(each.prepare(batch)) for _ in range(3)] for each in trainers]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][2] < losses[0][0]


def test_a_model_learns_in_bfloat16_through_the_gradient_cache(start: tuple[Path, Path]) -> None:
    job = plan("biencoder", *start, 4)
    trainer = ours(job, bf16=True)
    losses = [trainer.step(trainer.prepare(read(job, 0))) for _ in range(8)]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("streaming", [32, 64])
def test_batches_double_until_memory_is_too_small(monkeypatch: pytest.MonkeyPatch, streaming: int) -> None:
    room = {"dense": 16, "streaming": streaming}

    def score(form: object, way: str, size: int) -> measure.Cost | None:
        return measure.Cost(seconds=1, mib=size) if size <= room[way] else None

    monkeypatch.setattr(scores, "_score", score)
    (task,) = scores.scores(replace(SMALL, most=128))
    *_, last = task.results()
    assert last == Result("xtr", "batches up to 128", "times as large as dense", streaming / 16, "at least 4")


def test_too_little_memory_is_no_error() -> None:
    def fill() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    assert measure.measured(fill, 1) is None


def test_without_a_gpu_only_the_small_form_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.setattr(sys, "argv", ["gpu"])
    with pytest.raises(SystemExit, match="there is no GPU; add --small"):
        command.main()


def test_nothing_begins_after_the_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["gpu", "--small", "--minutes", "0", "--output", str(tmp_path / "gpu.tsv")]
    monkeypatch.setattr(sys, "argv", arguments)
    task = Task("p", "s", lambda: (Result("p", "s", "m", number) for number in range(2)))
    monkeypatch.setattr(command, "_tasks", lambda *_: iter([task, task]))
    command.main()
    assert [row["value"] for row in read_tsv(tmp_path / "gpu.tsv", made_by="benchmarks.gpu")] == ["0", "1"]


def test_a_task_or_a_contender_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Iterator[Result]:
        yield Result("p", "s", "m", 1)
        raise torch.OutOfMemoryError("CUDA out of memory")

    assert [row.value for row in Task("p", "s", run).results()] == [1, "too little"]

    def build(form: Form, job: TrainJob, setting: steps.Setting, contender: str) -> Trainer:
        made = theirs(job, bf16=False)
        fails = {OURS: (ValueError("no"),), THEIRS: (0.5, 0.5, ValueError("later"))}.get(contender, [0.5] * 9)
        return replace(made, step=Mock(side_effect=fails))

    monkeypatch.setattr(steps, "build", build)
    three = (OURS, THEIRS, steps.BY_TOKENS)
    (task, *_) = steps.steps(SMALL, tmp_path, Lengths.read(KEPT), contenders=three)
    rows = [(row.part, row.value) for row in task.results() if row.measure in ("failed", "timed steps")]
    expected = [(OURS, "ValueError: no"), (THEIRS, "ValueError: later"), (steps.BY_TOKENS, 2)]
    assert rows == expected


def test_mixed_texts_are_as_long_as_real_ones(tmp_path: Path) -> None:
    lengths = Lengths.read(KEPT)
    assert lengths.draw(np.random.default_rng(0), 10_000, 128).mean(axis=0) == pytest.approx([30, 94], abs=0.7)
    shards = write_shards(tmp_path, 1, 32, 64, lengths)
    tokens = [len(text.split()) + 2 for text in texts(shards)]
    assert min(tokens) < 16 and max(tokens) == 64


def test_the_time_of_overlapping_kernels_counts_once() -> None:
    assert covered([(3, 4), (0, 2), (1, 2.5), (1, 2)]) == 3.5


@pytest.mark.slow
def test_a_worker_of_ray_trains_what_this_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", "")
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    (task,) = launched(SMALL, tmp_path)
    figures = {row.measure: row.value for row in task.results()}
    assert figures["last loss in this process"] == pytest.approx(figures["last loss in a worker of Ray"], abs=1e-4)
    assert figures["largest difference of a weight"] < 1e-3
