"""Checksums of an artifact, written beside its files when it is made: damage on disk does not go unseen."""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256, files_sha256

FILE = "checksums.sha256"
"""Lines as ``sha256sum`` writes and checks them (``sha256sum --check checksums.sha256``)."""
_DEEPEST = 3
_REMEDY = "batchwright verify --mend removes it, dvc repro --pull makes it again"


def seal(folder: Path) -> None:
    """Write the checksums of all files in ``folder``."""
    names = sorted(_names(folder))
    sums = files_sha256([folder / name for name in names])
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, names, strict=True)]
    (folder / FILE).write_text("".join(lines), encoding="utf-8")


def check(file: Path, most_bytes: int | None = 64 << 20) -> None:
    """Compare a file with the checksums of the artifact that it belongs to, if there are any.

    Files larger than ``most_bytes`` only have to be named there: hashing them takes time. ``sha256`` remembers hashes.

    Raises:
        InputError: the file has changed since, or was not there.
    """
    if (root := _root(file)) is None or not file.exists():
        return
    sums = _read(root)
    expected = sums.get(file.relative_to(root).as_posix())
    if expected is None:
        raise InputError(f"{file}: is not one of the files in {root / FILE}; {_REMEDY}")
    if (most_bytes is None or file.stat().st_size <= most_bytes) and sha256(file) != expected:
        raise InputError(f"{file}: damaged, its content is not what {FILE} says; {_REMEDY}")


def sha256(file: Path) -> str:
    """Hash a file once, however often it is opened."""
    return _hashed(os.path.abspath(file), *_state(file))  # noqa: PTH100 (Path.resolve looks at every folder above)


def faults(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a sealed folder that are not what they were, and why.

    A folder without checksums has one fault.
    """
    if not (folder / FILE).exists():
        yield folder, f"has no {FILE}; it was made by an older version, or not by Batchwright"
        return
    try:
        sums = _parse.__wrapped__(folder / FILE)  # not what an earlier look at it found
    except InputError:
        yield folder / FILE, "damaged, its lines are not checksums"
        return
    there = set(_names(folder))
    for name in sorted(there | sums.keys()):
        if name not in there:
            yield folder / name, "missing"
        elif name not in sums:
            yield folder / name, f"is not one of the files in {FILE}"
        elif file_sha256(folder / name) != sums[name]:
            yield folder / name, f"damaged, its content is not what {FILE} says"


def _names(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*"):
        if file.is_file() and file != folder / FILE:
            yield file.relative_to(folder).as_posix()


def _root(file: Path) -> Path | None:
    """Return the sealed folder that a file lies in."""
    return next((parent for parent in list(file.parents)[:_DEEPEST] if (parent / FILE).exists()), None)


@lru_cache(maxsize=4096)
def _hashed(file: str, *state: int) -> str:  # noqa: ARG001
    return file_sha256(Path(file))


def _read(root: Path) -> Mapping[str, str]:
    file = root / FILE
    return _parse(Path(os.path.abspath(file)), *_state(file))  # noqa: PTH100


def _state(file: Path) -> tuple[int, ...]:
    """Return what is different once another file lies there."""
    found = file.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


@lru_cache(maxsize=64)
def _parse(file: Path, *state: int) -> Mapping[str, str]:  # noqa: ARG001
    sums = {}
    for line in filter(None, file.read_bytes().decode("utf-8", errors="replace").split("\n")):
        digest, space, name = line.partition("  ")
        if not space or len(digest) != 64 or not name:
            raise InputError(f"{file}: damaged, its lines are not checksums; {_REMEDY}")
        sums[name] = digest
    return sums
