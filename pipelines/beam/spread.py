"""Takes independent work to Beam's workers if ``BEAM_OPTIONS`` says which, or else to processes of this machine."""

import os
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from batchwright.by_domain.spread import on_this_machine
from batchwright.core.runtime import beam_is_asked, scratch
from pipelines.beam.errors import guarded, raise_errors

Item = TypeVar("Item")

_PROCESS = uuid.uuid4().hex


def spread(work: Callable[[Item], None], items: Sequence[Item], *, desc: str, unit: str, processes: int = 1) -> None:
    """Call ``work`` for each item; it leaves files, and depends on no other item.

    Without Beam, so many ``processes`` of this machine do them, each on one core; a single one is this process.

    Raises:
        InputError: ``work`` raised some; the message has all of them.
    """
    if beam_is_asked() and len(items) > 1:
        _by_beam(work, items, desc, unit)
    else:
        on_this_machine(work, items, desc=desc, unit=unit, processes=processes)


def _by_beam(work: Callable[[Item], None], items: Sequence[Item], desc: str, unit: str) -> None:
    import apache_beam as beam  # takes a second

    from pipelines.beam.pipeline import pipeline, progress

    project, driver = Path.cwd(), _PROCESS

    def call(numbered: tuple[int, Item]) -> None:
        number, item = numbered
        _settle(project, driver)
        work(item)
        (done / str(number)).touch()

    with tempfile.TemporaryDirectory(dir=scratch("beam").resolve()) as folder:
        done, errors = Path(folder, "done"), Path(folder, "errors")
        done.mkdir()
        with progress(len(items), desc, unit, lambda: sum(1 for _ in done.iterdir())), pipeline() as graph:
            _ = graph | "Items" >> beam.Create(list(enumerate(items))) | "Work" >> beam.Map(guarded(call, errors))
        raise_errors(errors)


def _settle(project: Path, driver: str) -> None:
    """Prepare a worker process: paths of artifacts are relative, and other cores have work of their own."""
    if driver != _PROCESS:
        os.chdir(project)
        os.environ["BATCHWRIGHT_WORKERS"] = "1"
        threadpool_limits(1)
