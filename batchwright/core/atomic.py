"""Atomic writes: files and folders appear complete or not at all."""

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path next to ``path`` and rename it to ``path`` if the block succeeds.

    With ``durable=False`` the file is not fsynced: faster, but a power failure may lose it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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

    Only one writer may use it at a time: it first removes whatever a killed writer left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        temporary.chmod(0o755)
        _publish(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _publish(finished: Path, path: Path) -> None:
    """Rename the folder ``finished`` to ``path``. What was there is removed last, so that it is never lost."""
    for file in finished.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
            _sync(file)
    old = Path(f"{finished}.old")
    if path.exists():
        path.rename(old)
    finished.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def _sync(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())
