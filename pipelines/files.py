"""Finds files by pattern, and turns read errors into messages that name the file."""

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from batchwright.core.errors import InputError

MOST_BYTES, MOST_TIMES = 1 << 30, 250
"""A compressed file may become so many bytes, or so many times its size, whichever is more."""


def find_files(pattern: str) -> list[str]:
    """List the files that match a path or glob pattern, sorted.

    Raises:
        InputError: there are none.
    """
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute patterns)
    files = [name for name in found if Path(name).is_file()]
    if files:
        return files
    if found:
        raise InputError(f"{pattern}: is a folder; name its files, such as {pattern.rstrip('/')}/*")
    reason = "no file matches this pattern" if glob.has_magic(pattern) else "no such file"
    raise InputError(f"{pattern}: {reason}; correct 'path' of this source")


def most_bytes(file: str) -> int:
    """How many bytes a compressed file may become."""
    return max(MOST_BYTES, MOST_TIMES * Path(file).stat().st_size)


@contextmanager
def readable(file: str) -> Iterator[None]:
    """Turn the exceptions of reading a damaged file into an InputError that names it."""
    try:
        yield
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{file}: cannot be read ({reason}); the file is damaged or in another format") from None
