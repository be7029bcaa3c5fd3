"""Atomic writes: files and folders appear complete or not at all, and folders with checksums that show damage."""

import errno
import fnmatch
import glob
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256, files_sha256

CHECKSUMS = "checksums.sha256"
"""Lines as ``sha256sum`` writes and checks them (``sha256sum --check checksums.sha256``)."""
_DEEPEST = 3
_REMEDY = "batchwright verify --mend removes it, dvc repro --pull makes it again"
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

    Its files get checksums. Only one writer may use it at a time: it first removes whatever
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


def seal(folder: Path) -> None:
    """Write the checksums of all files in ``folder``."""
    names = sorted(_names(folder))
    sums = files_sha256([folder / name for name in names])
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, names, strict=True)]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


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
        raise InputError(f"{file}: is not one of the files in {root / CHECKSUMS}; {_REMEDY}")
    if (most_bytes is None or file.stat().st_size <= most_bytes) and sha256(file) != expected:
        raise InputError(f"{file}: damaged, its content is not what {CHECKSUMS} says; {_REMEDY}")


def sha256(file: Path) -> str:
    """Hash a file once, however often it is opened."""
    return _hashed(os.path.abspath(file), *_state(file))  # noqa: PTH100 (Path.resolve looks at every folder above)


def faults(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a sealed folder that are not what they were, and why.

    A folder without checksums has one fault.
    """
    if not (folder / CHECKSUMS).exists():
        yield folder, f"has no {CHECKSUMS}; it was made by an older version, or not by Batchwright"
        return
    try:
        sums = _parse.__wrapped__(folder / CHECKSUMS)  # not what an earlier look at it found
    except InputError:
        yield folder / CHECKSUMS, "damaged, its lines are not checksums"
        return
    there = set(_names(folder))
    for name in sorted(there | sums.keys()):
        if name not in there:
            yield folder / name, "missing"
        elif name not in sums:
            yield folder / name, f"is not one of the files in {CHECKSUMS}"
        elif file_sha256(folder / name) != sums[name]:
            yield folder / name, f"damaged, its content is not what {CHECKSUMS} says"


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


def _names(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*"):
        if file.is_file() and file != folder / CHECKSUMS:
            yield file.relative_to(folder).as_posix()


def _root(file: Path) -> Path | None:
    """Return the sealed folder that a file lies in."""
    return next((parent for parent in list(file.parents)[:_DEEPEST] if (parent / CHECKSUMS).exists()), None)


@lru_cache(maxsize=4096)
def _hashed(file: str, *state: int) -> str:  # noqa: ARG001
    return file_sha256(Path(file))


def _read(root: Path) -> Mapping[str, str]:
    file = root / CHECKSUMS
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
