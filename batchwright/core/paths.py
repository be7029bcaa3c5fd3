"""Paths of the artifacts, relative to the project folder, and what DVC would not notice about them."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from batchwright.core.errors import InputError

PIPELINE = Path("dvc.yaml")
DATA = Path("data")
PAIRS = DATA / "pairs"
CORPUS = DATA / "corpus"
"""Documents without queries, in files like those of pairs whose queries are empty."""
REJECTS = DATA / "rejects.parquet"
VECTORS = DATA / "vectors"
NEGATIVES = DATA / "negatives"
CLUSTERS = DATA / "clusters"
SHARDS = DATA / "shards"
MODELS = Path("models")
START_MODELS = MODELS / "start"
SCORES = DATA / "scores"
RESULTS = Path("results")
REPORT = Path("report/index.html")
RAW = Path("raw")
RAW_PAIRS = RAW / "pairs"


def unwatched(path: Path | str, folder: Path) -> str | None:
    """Return why DVC, which watches ``folder``, would not see that ``path`` changes, or None if it would.

    DVC follows links to files, but not links to folders.
    """
    inside = Path(os.path.normpath(path))
    if not inside.is_relative_to(folder):
        return f"lies outside {folder}"
    links = [parent for parent in inside.parents if parent.is_relative_to(folder) and parent.is_symlink()]
    return f"{links[0]} is a link to a folder" if links else None


def check_watched(paths: Iterable[Path | str], folder: Path) -> None:
    """Check that DVC, which watches ``folder``, would see it if one of ``paths`` changed.

    Raises:
        InputError: it would not.
    """
    for path in paths:
        if reason := unwatched(path, folder):
            raise InputError(
                f"{path}: {reason}, so dvc repro would not notice when it changes; link its files to {folder}"
            )


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
