"""Apache Beam for the pipelines: record batches as elements, options, progress and quiet output."""

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator

import apache_beam as beam
import pyarrow as pa
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions

from batchwright.core.errors import InputError
from batchwright.core.runtime import beam_options
from batchwright.core.terminal import counter

_WORKER_OS_ERROR = re.compile(r"\b(?:\w*Error: \[Errno (\d+)\]|OSError:) (.*?)(?: \[while running '|$)", re.MULTILINE)
_WATCH_SECONDS = 2.0


class RecordBatchCoder(beam.coders.Coder):  # type: ignore[misc]
    """Encodes record batches as Arrow IPC streams; pickling a slice would pickle the whole batch."""

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
    """Yield a pipeline with the options in ``BEAM_OPTIONS``; it runs at the end of the block.

    Raises:
        InputError: Beam does not accept the options.
        OSError: a worker raised one.
    """
    graph = _new_pipeline()
    mode = graph.options.view_as(DirectOptions).direct_running_mode
    try:
        with kept_back(workers=mode == "multi_processing"), graph:
            yield graph
    except RuntimeError as error:
        if of_worker := _os_error(error):
            raise of_worker from None
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


@contextlib.contextmanager
def progress(total: int, label: str, unit: str, done: Callable[[], int]) -> Iterator[None]:
    """Show a progress bar on stderr. ``done`` counts what the workers, wherever they run, have finished."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_WATCH_SECONDS):
            shown.update(done() - shown.n)

    with os.fdopen(os.dup(2), "w") as screen, counter(total, desc=label, unit=unit, file=screen) as shown:
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            shown.update(done() - shown.n)


@contextlib.contextmanager
def kept_back(workers: bool) -> Iterator[None]:
    """Keep back what worker processes print to stderr, which Beam cannot be told to stop; print it if they fail.

    An error that the user can mend is told by its own message.
    """
    if not workers:
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept, os.fdopen(os.dup(2), "wb") as screen:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except Exception as error:
            if not _os_error(error):
                kept.seek(0)
                shutil.copyfileobj(kept, screen)
            raise
        finally:
            os.dup2(screen.fileno(), 2)


def _os_error(error: Exception) -> OSError | None:
    """Return the OSError of a worker; Beam keeps only its text, in a RuntimeError."""
    match = _WORKER_OS_ERROR.search(str(error)) if isinstance(error, RuntimeError) else None
    return OSError(*([int(match[1])] if match[1] else []), match[2]) if match else None
