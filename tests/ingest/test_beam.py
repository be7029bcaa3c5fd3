"""What both pipelines share: record batches are passed as Arrow streams, and user errors as data."""

import contextlib
import errno
import itertools
import os
import time
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest

from batchwright.core.errors import InputError
from pipelines.beam.pipeline import RecordBatchCoder, kept_back, pipeline, progress
from pipelines.beam.spread import guarded, raise_errors


def test_a_slice_is_encoded_without_the_rest_of_its_record_batch() -> None:
    whole = pa.record_batch({"text": ["x" * 1000] * 100, "list": [["a", None]] * 100})
    part = whole.slice(40, 2)
    encoded = RecordBatchCoder().encode(part)
    assert len(encoded) < 5000
    assert RecordBatchCoder().decode(encoded) == part


def test_record_batches_use_this_coder() -> None:
    assert isinstance(beam.coders.registry.get_coder(pa.RecordBatch), RecordBatchCoder)


def test_a_user_error_in_a_worker_reaches_the_driver_and_other_elements_are_processed(tmp_path: Path) -> None:
    def work(element: int) -> None:
        if element % 2:
            raise InputError(f"element {element} is odd")
        (tmp_path / f"{element}.even").touch()

    with pipeline() as graph:
        _ = graph | beam.Create([1, 2, 3, 4]) | beam.Map(guarded(work, tmp_path / "errors"))
    assert sorted(file.name for file in tmp_path.glob("*.even")) == ["2.even", "4.even"]
    with pytest.raises(InputError, match="element 1 is odd\nelement 3 is odd"):
        raise_errors(tmp_path / "errors")


def test_without_saved_errors_nothing_is_raised(tmp_path: Path) -> None:
    raise_errors(tmp_path / "errors")


@pytest.mark.parametrize(
    ("raised", "number", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "part"), errno.ENOSPC, "No space left on device: 'part'"),
        (PermissionError(errno.EACCES, "Permission denied", "part"), errno.EACCES, "Permission denied: 'part'"),
        (OSError("10 requested and 3 written"), None, "10 requested and 3 written"),
    ],
)
def test_an_os_error_in_a_worker_is_raised_as_an_os_error(raised: OSError, number: int | None, message: str) -> None:
    def fail(_: int) -> None:
        raise raised

    with pytest.raises(OSError) as caught, pipeline() as graph:
        _ = graph | beam.Create([1]) | beam.Map(fail)
    assert caught.value.errno == number
    assert message in str(caught.value)


def test_other_exceptions_in_a_worker_keep_their_type() -> None:
    def fail(element: int) -> float:
        return 1 / element

    with pytest.raises(ZeroDivisionError), pipeline() as graph:
        _ = graph | beam.Create([0]) | beam.Map(fail)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (None, ""),
        (RuntimeError("OSError: [Errno 28] No space left on device [while running 'Read']"), ""),
        (RuntimeError("worker died"), "INFO: of a worker\n"),
    ],
)
def test_what_worker_processes_print_is_shown_only_if_it_helps(
    error: Exception | None, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(RuntimeError), kept_back(workers=True):
        os.write(2, b"INFO: of a worker\n")
        if error:
            raise error
    assert capfd.readouterr().err == shown
    with kept_back(workers=False):
        os.write(2, b"of this process\n")
    assert capfd.readouterr().err == "of this process\n"


def test_the_bar_counts_what_any_worker_has_finished(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pipelines.beam.pipeline._WATCH_SECONDS", 0.01)
    monkeypatch.setattr("batchwright.core.terminal._seconds", lambda: 0.1)  # as on a terminal
    finished = itertools.chain(range(5), itertools.repeat(4))
    with progress(4, "embed", "text", lambda: next(finished)), kept_back(workers=True):
        time.sleep(2.2)  # bars of shorter steps are not shown
    assert "embed: 100%" in capfd.readouterr().err
