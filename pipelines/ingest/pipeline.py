"""Reads and normalises every part that no earlier run has read, each into a folder of its own, several at a time."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from batchwright.by_domain.kept import forget_others
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import code_fingerprint, file_sha256, fingerprint
from batchwright.core.paths import watching
from batchwright.core.runtime import scratch, workers
from pipelines.beam.spread import guarded, raise_errors, spread
from pipelines.ingest.read import PartRead, find_part, read_part
from pipelines.ingest.sources.base import Part, Source

_STAGE = "ingest/parts"
_LARGE = 10 << 20
"""Bytes in all files from which on several processes pay."""

Element = tuple[int, Part, Path]
"""Index of the source, a part of it, and the folder for what is read."""


def read_sources(sources: Sequence[Source]) -> list[tuple[int, PartRead]]:
    """Return all parts in order, each with the index of its source.

    Raises:
        InputError: a source cannot be read, or changes meanwhile; the message reports the errors of all sources.
    """
    parts = [(entry, part) for entry, source in enumerate(sources) for part in source.parts()]
    watched = [watching(partial(sources[entry].read_for, part)) for entry, part in parts]
    folder_of = _naming()
    elements = [(entry, part, folder_of(sources[entry], part)) for entry, part in parts]
    checks = {folder: check for (_, _, folder), check in zip(elements, watched, strict=True)}
    read = {folder: find_part(folder) for folder in checks}
    unread = {folder: element for element in elements if read[folder := element[2]] is None}
    if unread:
        _read(sources, list(unread.values()), checks)
        read |= {folder: find_part(folder) for folder in unread}
    forget_others(_STAGE, {folder.name for folder in read})
    return [(entry, _present(part, read[folder])) for entry, part, folder in elements]


def _read(sources: Sequence[Source], unread: list[Element], checks: dict[Path, Callable[[], None]]) -> None:
    files = {file for entry, part, _ in unread for file in sources[entry].read_for(part)}
    processes = workers() if sum(Path(file).stat().st_size for file in files) >= _LARGE else 1
    for _, _, folder in unread:  # what a killed run left, or what is damaged
        shutil.rmtree(folder, ignore_errors=True)

    def read(element: Element) -> None:
        entry, part, folder = element
        try:
            read_part(sources[entry], part, folder, checks[folder])
        except InputError:
            checks[folder]()  # it may have failed because its file changed
            raise

    with tempfile.TemporaryDirectory(dir=scratch("ingest").resolve()) as errors:
        spread(guarded(read, Path(errors)), unread, desc="ingest", unit="part", processes=processes)
        raise_errors(Path(errors))


def _present(part: Part, read: PartRead | None) -> PartRead:
    if read is None:
        raise InputError(
            f"{part.name}: was read, but its rows are not in {scratch(_STAGE)}, or are damaged; all Beam workers must "
            "share the folder BATCHWRIGHT_SCRATCH"
        )
    return read


def _naming() -> Callable[[Source, Part], Path]:
    """Return a function that names the folder of a part by all that its content depends on."""
    code = code_fingerprint(Path(__file__).parents[1])
    libraries = [*sys.version_info[:3], version("pyarrow"), version("datasets")]
    sha256 = cache(file_sha256)

    def folder_of(source: Source, part: Part) -> Path:
        files = [(file, sha256(Path(file))) for file in source.read_for(part)]
        folder = scratch(_STAGE).resolve() / fingerprint(source.model_dump(), part, files, code, libraries)
        if not files:  # nobody knows whether it has changed
            shutil.rmtree(folder, ignore_errors=True)
        return folder

    return folder_of
