"""What both pipelines share: record batches are passed as Arrow streams, and user errors as data."""

import errno
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest

from batchwright.core.errors import InputError
from pipelines.beam import RecordBatchCoder, guarded, pipeline, raise_errors, save, saved


def test_a_slice_is_encoded_without_the_rest_of_its_record_batch() -> None:
    whole = pa.record_batch({"text": ["x" * 1000] * 100, "list": [["a", None]] * 100})
    part = whole.slice(40, 2)
    encoded = RecordBatchCoder().encode(part)
    assert len(encoded) < 5000
    assert RecordBatchCoder().decode(encoded) == part


def test_record_batches_use_this_coder() -> None:
    assert isinstance(beam.coders.registry.get_coder(pa.RecordBatch), RecordBatchCoder)


def test_a_user_error_in_a_worker_reaches_the_driver_and_other_elements_are_processed(tmp_path: Path) -> None:
    def work(element: int) -> Iterator[int]:
        yield element
        if element % 2:
            raise InputError(f"element {element} is odd")
        save({"element": element}, tmp_path / "even")

    with pipeline() as graph:
        _ = graph | beam.Create([1, 2, 3, 4]) | beam.FlatMap(guarded(work, tmp_path / "errors"))
    assert sorted(record["element"] for record in saved(tmp_path / "even")) == [2, 4]
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
