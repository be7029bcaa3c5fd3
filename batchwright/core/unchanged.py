"""Files that must stay as they are while a stage reads them."""

from collections.abc import Callable, Iterable
from pathlib import Path

from batchwright.core.errors import InputError


def watching(files: Callable[[], Iterable[Path | str]]) -> Callable[[], None]:
    """Look at the files that ``files`` lists, and return a check that they are still the same.

    DVC takes its hashes when the stage has ended: what was written while it ran would count as read, though it was not.

    Raises:
        InputError: raised by the check; a file was changed, added or removed meanwhile.
    """
    before = _states(files())

    def check() -> None:
        after = _states(files())
        for file in sorted(before.keys() | after.keys()):
            if before.get(file) != after.get(file):
                raise InputError(f"{file}: changed while it was read; run the stage again once it is complete")

    return check


def _states(files: Iterable[Path | str]) -> dict[str, tuple[int, int, int] | None]:
    return {str(file): _state(Path(file)) for file in files}


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
