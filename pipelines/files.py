"""Files from outside: found by pattern, opened as text, with a limit to what they become and errors that name them."""

import glob
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pyarrow as pa

from batchwright.core.errors import InputError
from batchwright.core.untrusted_text import Lines

T = TypeVar("T")

MOST_BYTES, MOST_TIMES = 1 << 30, 250
"""A compressed file may become so many bytes, or so many times its size, whichever is more."""
_BUFFER = 1 << 20
_PACKED = {
    b"\x1f\x8b": "compressed with gzip; rename it to end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; rename it to end in .zst",
    b"BZh9": "compressed with bzip2; rename it to end in .bz2",
    b"\xfd7zXZ\0": "compressed with xz; unpack it",
    b"PK\x03\x04": "an archive or a spreadsheet; unpack it, or save it as CSV",
    b"PAR1": "Parquet; rename it to end in .parquet",
    b"ARROW1": "Arrow; rename it to end in .arrow",
}
"""What is read as text, and is none, by how it begins."""
_UNDECODED = re.compile("[\ud800-\udfff]")
_UTF8_MARK = b"\xef\xbb\xbf"


def find_files(pattern: str) -> list[str]:
    """List the files that match a path or glob pattern, sorted; the file of exactly this name, if there is one.

    Raises:
        InputError: there are none, or one has a name that Arrow cannot open.
    """
    exact = Path(pattern).is_file()  # a name may hold [ and ], too
    matches = [pattern] if exact else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (absolute, too)
    files = [name for name in matches if Path(name).is_file()]
    if undecoded := [name for name in files if _UNDECODED.search(name)]:
        raise InputError(f"{undecoded[0]}: the name of this file is not UTF-8; rename it, or choose a locale of UTF-8")
    if files:
        return files
    if matches:
        raise InputError(f"{pattern}: is a folder; name its files, such as {pattern.rstrip('/')}/*")
    reason = "no file matches this pattern" if glob.has_magic(pattern) else "no such file"
    raise InputError(f"{pattern}: {reason}; correct 'path' of this source")


@contextmanager
def readable(file: str) -> Iterator[None]:
    """Turn the exceptions of reading a damaged file into an InputError that names it."""
    try:
        yield
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{file}: cannot be read ({reason}); the file is damaged or in another format") from None


@contextmanager
def open_text(file: str) -> Iterator[TextIO]:
    """Open a text file, plain or compressed (.gz, .zst, .bz2, .lz4), without translating newlines.

    Bytes that are not UTF-8 become lone surrogates, so that a bad line rejects only its own row.

    Raises:
        InputError: the file is damaged or is not UTF-8 text.
    """
    with readable(file), pa.input_stream(file, compression="detect") as stream:
        buffered = io.BufferedReader(_Counted(file, stream), _BUFFER)
        start = buffered.peek(1024)[:1024]
        if packed := next((what for magic, what in _PACKED.items() if start.startswith(magic)), None):
            raise InputError(f"{file}: is {packed}")
        if b"\0" in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{file}: not UTF-8 text (UTF-16 or binary?); convert it to UTF-8")
        if start.startswith(_UTF8_MARK):
            buffered.read(len(_UTF8_MARK))
        with Lines(file, buffered, errors="surrogateescape") as text:
            yield text


class _Counted(io.RawIOBase):
    """Bytes out of a compressed file, up to a limit."""

    def __init__(self, file: str, stream: pa.NativeFile) -> None:
        self._file, self._stream, self._read = file, stream, 0
        self._most = most_bytes(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        content = self._stream.read(len(buffer))
        self._read += len(content)
        check_decompressed(self._file, self._read, self._most)
        buffer[: len(content)] = content
        return len(content)


def check_decompressed(file: str, size: int, most: int) -> None:
    """Check the ``size`` of what comes out of a compressed file.

    Raises:
        InputError: it is more than ``most``.
    """
    if size > most:
        raise InputError(
            f"{file}: is more than {most:,} bytes when decompressed, {MOST_TIMES} times its size, "
            "which looks like harm; decompress it yourself if it is meant"
        )


def most_bytes(file: str) -> int:
    """How many bytes a compressed file may become."""
    return max(MOST_BYTES, MOST_TIMES * Path(file).stat().st_size)


def not_empty(file: str, rows: Iterable[T]) -> Iterator[T]:
    """Return ``rows`` unchanged, or raise InputError if there are none."""
    rows = iter(rows)
    first = list(itertools.islice(rows, 1))
    if not first:
        raise InputError(f"{file}: has no rows; add rows or remove it from 'ingest.sources'")
    return itertools.chain(first, rows)
