"""Apache Beam as the pipelines use it: record batches as elements, user errors as data, no noise."""

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import apache_beam as beam
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions
from tqdm import tqdm

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint
from batchwright.core.runtime import beam_options

Element = TypeVar("Element")
_WORKER_OS_ERROR = re.compile(r"\b(?:\w*Error: \[Errno (\d+)\]|OSError:) (.*?)(?: \[while running '|$)", re.MULTILINE)
_bar: "tqdm[Any] | None" = None


class RecordBatchCoder(beam.coders.Coder):  # type: ignore[misc]
    """Record batches as Arrow IPC streams; pickling a slice would carry the whole batch along."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        encoded: bytes = sink.getvalue().to_pybytes()
        return encoded

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        return pa.ipc.open_stream(encoded).read_next_batch()

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return pa.RecordBatch  # type: ignore[no-any-return]


beam.coders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)


@contextlib.contextmanager
def pipeline() -> Iterator[beam.Pipeline]:
    """A pipeline on the runner that ``BEAM_OPTIONS`` asks for; it runs where the block ends.

    Raises:
        InputError: the options are not Beam's.
        OSError: a worker raised one.
    """
    graph = _new_pipeline()
    try:
        with graph:
            yield graph
    except RuntimeError as error:
        # All that Beam keeps of a worker's exception is its text.
        if found := _WORKER_OS_ERROR.search(str(error)):
            raise OSError(*([int(found[1])] if found[1] else []), found[2]) from None
        raise


def _new_pipeline() -> beam.Pipeline:
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            options = PipelineOptions(beam_options())
            unknown = options.get_all_options(retain_unknown_options=True).keys() - options.get_all_options().keys()
            if unknown:
                raise ValueError(f"unknown option '--{min(unknown)}'")
            return beam.Pipeline(options=options)
    except (SystemExit, ValueError, ImportError) as error:
        reason = complaint.getvalue().strip().splitlines() or [str(error)]
        raise InputError(f"environment variable BEAM_OPTIONS: {reason[-1]}") from None


def guarded(work: Callable[..., Iterator[Element]], errors: Path) -> Callable[..., Iterator[Element]]:
    """Make a ``FlatMap`` function leave an InputError in the folder ``errors``, for ``raise_errors``.

    Raised in a worker it would reach the user as a traceback inside a RuntimeError.
    """

    def call(*arguments: Any) -> Iterator[Element]:
        try:
            yield from work(*arguments)
        except InputError as error:
            save(str(error), errors)

    return call


def save(element: object, folder: Path) -> None:
    """Leave a JSON-serialisable element in ``folder`` for the driver; doing so twice is doing so once."""
    with atomic_file(folder / f"{fingerprint(element)}.json", durable=False) as temporary:
        temporary.write_text(json.dumps(element), encoding="utf-8")


def saved(folder: Path) -> list[Any]:
    """The elements that workers left in ``folder``, in an order that depends on nothing but them."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def raise_errors(folder: Path) -> None:
    """Raise the user errors that workers left in ``folder``, as one InputError."""
    if messages := sorted(saved(folder)):
        raise InputError("\n".join(messages))


@contextlib.contextmanager
def progress(total: int, label: str, unit: str) -> Iterator[None]:
    """Show a bar on stderr that ``advance`` moves; workers in other processes move nothing."""
    global _bar
    with tqdm(total=total, desc=label, unit=unit, mininterval=2, delay=2) as _bar:
        try:
            yield
        finally:
            _bar = None


def advance(done: int = 1) -> None:
    """Move the bar of this process, if it shows one."""
    if _bar is not None:
        _bar.update(done)
