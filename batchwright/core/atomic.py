"""Atomic writes: files and folders appear complete or not at all."""

import errno
import fnmatch
import glob
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.seal import FILE as CHECKSUMS
from batchwright.core.seal import seal

_OLD = ".old"
_UNFINISHED = "~"
"""After the name of a folder; no name of ours has it, so what a killed writer left cannot be taken for another's."""
_SYNCED_TOGETHER = 16
_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]


@contextmanager
def atomic_file(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path next to ``path`` and rename it to ``path`` if the block succeeds.

    With ``durable=False`` the file is not fsynced: faster, but a power failure may lose it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.{_writer()}.")
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        if durable:
            _sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to ``path`` that replaces the folder ``path`` if the block succeeds.

    Its files get checksums (``batchwright.core.seal``). Only one writer may use it at a time: it first removes whatever
    a killed writer left behind.

    Raises:
        InputError: ``path`` is a mount point, which nothing can replace.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = f".{path.name}{_UNFINISHED}"
    for left in path.parent.glob(f"{glob.escape(unfinished)}*"):
        if left.suffix == _OLD and not path.exists():
            left.rename(path)  # the writer was killed between the two renames
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=unfinished))
    try:
        yield temporary
        temporary.chmod(0o755)
        _publish(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of ``atomic_file`` below ``folder`` whose writers were killed on this machine."""
    for place, below, files in os.walk(folder):
        if CHECKSUMS in files:  # an artifact, which was whole when it got its name
            below.clear()
            continue
        for file in fnmatch.filter(files, f".*.{_MACHINE}-*.*"):
            writer = file.split(f".{_MACHINE}-", 1)[1].partition(".")[0]
            if writer.isdecimal() and not Path(f"/proc/{writer}").exists() and Path("/proc").is_dir():
                Path(place, file).unlink(missing_ok=True)


def _writer() -> str:
    return f"{_MACHINE}-{os.getpid()}"


def _publish(finished: Path, path: Path) -> None:
    """Rename the folder ``finished`` to ``path``. What was there is removed last, so that it is never lost."""
    seal(finished)
    # One after the other, thousands of files would take a turn of the disk each.
    with ThreadPoolExecutor(_SYNCED_TOGETHER) as pool:
        list(pool.map(_settle, [file for file in finished.rglob("*") if file.is_file()]))
    old = Path(f"{finished}{_OLD}")
    if path.exists():
        _put_aside(path, old)
    try:
        finished.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _put_aside(path: Path, old: Path) -> None:
    try:
        path.rename(old)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise InputError(f"{path}: is a mount point, which cannot be replaced; mount {path.parent} instead") from None


def _settle(file: Path) -> None:
    file.chmod(0o644)
    _sync(file)


def _sync(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())
