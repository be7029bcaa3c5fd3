"""Files and folders that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; it takes the name ``path`` when the block succeeds.

    What is not ``durable`` may not outlive a power failure, and costs no wait for the disk.
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
    """Yield a temporary folder beside ``path``; it replaces the folder ``path`` when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        temporary.chmod(0o755)
        publish_dir(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def publish_dir(finished: Path, path: Path) -> None:
    """Move the folder ``finished`` to ``path``, in place of whatever is there."""
    for file in finished.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
            _sync(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    shutil.move(finished, path)  # a rename, or a copy where the scratch folder is on another disk


def _sync(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())
