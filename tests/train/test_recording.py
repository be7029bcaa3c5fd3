"""A training can be watched while it runs: curves grow by the row, and TensorBoard gets the same rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batchwright.core.files import append_tsv, read_tsv, write_tsv
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.common import step_loop
from trainers.common.curves import recording
from trainers.common.job import TrainJob
from trainers.common.sentence_learner import SentenceLearner
from trainers.variants import train

STEPS = 4


class Dev:
    """Stands in for the dev queries."""

    fingerprint = "dev"

    def __call__(self, folder: Path) -> dict[str, float]:
        assert (folder / "model.safetensors").exists()
        return {"ndcg@10": 0.25}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    shards = write_toy_shards(folder / "shards", [toy_batch(toy_rows(4, seed)) for seed in range(STEPS)])
    return write_toy_model(folder / "toy"), shards


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.delenv("BATCHWRIGHT_TENSORBOARD", raising=False)
    yield tmp_path / "scratch"


def job(folder: Path, inputs: tuple[Path, Path]) -> TrainJob:
    return toy_job(folder, *inputs, dev=Dev(), evaluate_every=2)


def test_after_ten_steps_the_time_that_is_left_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 100.0 + 9 * 3])
    monkeypatch.setattr(step_loop.time, "monotonic", lambda: next(clock))
    pace = step_loop.Pace(steps=620)
    told = [pace.after(step) for step in range(11, 41)]  # resumed after ten steps
    assert told[9] == "600 of 620 steps left, about 30 minutes at the pace so far"
    assert not any(told[:9] + told[10:])


def test_rows_that_are_appended_are_the_rows_of_the_finished_table(tmp_path: Path) -> None:
    rows = [{"step": 1, "loss": 2 / 3}, {"step": 2, "loss": 1e-9}]
    for row in rows:
        append_tsv(tmp_path / "new" / "grown.tsv", row)
    write_tsv(tmp_path / "written.tsv", rows)
    assert (tmp_path / "new" / "grown.tsv").read_bytes() == (tmp_path / "written.tsv").read_bytes()


def test_both_curves_grow_with_every_step_and_a_resumed_run_repeats_none(
    tmp_path: Path, inputs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = job(tmp_path, inputs)
    backward = SentenceLearner.backward
    seen: list[tuple[list[str], list[str]]] = []

    def steps(curve: Path) -> list[str]:
        return [row["step"] for row in read_tsv(curve, made_by="train")] if curve.exists() else []

    def look(learner: SentenceLearner, batch: Any) -> Any:
        seen.append((steps(watched.curve), steps(watched.dev_curve)))
        if len(seen) == 4:
            raise KeyboardInterrupt
        return backward(learner, batch)

    monkeypatch.setattr(SentenceLearner, "backward", look)
    monkeypatch.setattr(step_loop, "SAVE_EVERY_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(watched)
    train(watched)
    last = (["1", "2", "3"], ["0", "2"])
    assert seen == [([], []), (["1"], ["0"]), (["1", "2"], ["0"]), last, last]
    assert (steps(watched.curve), steps(watched.dev_curve)) == (["1", "2", "3", "4"], ["0", "2", "4"])


def test_rows_left_by_a_killed_run_are_gone(tmp_path: Path, inputs: tuple[Path, Path]) -> None:
    watched = job(tmp_path, inputs)
    append_tsv(watched.curve, {"step": 17})
    with recording(watched, watched.curve, watched.dev_curve):
        assert not watched.curve.exists()


def test_tensorboard_gets_every_row_once(
    tmp_path: Path, inputs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboardX.proto.event_pb2 import Event

    monkeypatch.setenv("BATCHWRIGHT_TENSORBOARD", str(tmp_path / "events"))
    for _ in range(2):  # a repeated run replaces the first
        train(watched := job(tmp_path, inputs))
    (file,) = (tmp_path / "events").glob("biencoder-*/events*")
    events = [Event.FromString(record) for record in _records(file.read_bytes())]
    logged = [(value.tag, event.step) for event in events for value in event.summary.value]
    losses = [float(row["loss"]) for row in read_tsv(watched.curve, made_by="train")]
    assert [step for tag, step in logged if tag == "loss"] == [1, 2, 3, 4]
    assert [step for tag, step in logged if tag == "dev/ndcg_at_10"] == [0, 2, 4]
    values = [value.simple_value for event in events for value in event.summary.value if value.tag == "loss"]
    assert values == pytest.approx(losses, rel=1e-5)


def _records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a TFRecord file: length (8 bytes), checksum (4), data, checksum (4)."""
    while content:
        size = int.from_bytes(content[:8], "little")
        yield content[12 : 12 + size]
        content = content[16 + size :]


def test_event_files_do_not_change_what_is_learned(
    tmp_path: Path, inputs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(plain := job(tmp_path / "plain", inputs))
    monkeypatch.setenv("BATCHWRIGHT_TENSORBOARD", str(tmp_path / "events"))
    train(shown := job(tmp_path / "shown", inputs))
    for file in ("curve.tsv", "curve-dev.tsv", "model/model.safetensors"):
        assert (plain.model.parent / file).read_bytes() == (shown.model.parent / file).read_bytes()
