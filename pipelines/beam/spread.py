"""Takes independent work to Beam's workers if ``BEAM_OPTIONS`` says which, or else to processes of this machine.

User errors of Beam's workers are saved as files, and raised together when all is done.
"""

import os
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from batchwright.by_domain.spread import on_this_machine
from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint
from batchwright.core.runtime import beam_is_asked, scratch

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


def guarded(work: Callable[[Item], None], errors: Path) -> Callable[[Item], None]:
    """Wrap ``work`` so that an InputError is saved in the folder ``errors``, for ``raise_errors``.

    One raised in a worker of Beam would reach the user as a traceback inside a RuntimeError.
    """

    def call(item: Item) -> None:
        try:
            work(item)
        except InputError as error:
            message = str(error)
            with atomic_file(errors / f"{fingerprint(message)}.txt", durable=False) as temporary:
                temporary.write_text(message, encoding="utf-8")

    return call


def raise_errors(folder: Path) -> None:
    """Raise the user errors that workers saved in ``folder``, if any, as one InputError."""
    if messages := sorted(file.read_text(encoding="utf-8") for file in folder.glob("*.txt")):
        raise InputError("\n".join(messages))
