"""Reads plain or compressed text files, with errors that name the file."""

import io
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

import pyarrow as pa

from batchwright.core.errors import InputError
from batchwright.core.untrusted_text import Lines
from pipelines.files import MOST_TIMES, most_bytes, readable

T = TypeVar("T")
_BUFFER = 1 << 20

_UTF8_MARK = b"\xef\xbb\xbf"


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
        if b"\0" in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{file}: not UTF-8 text (UTF-16 or binary?); convert it to UTF-8")
        if start.startswith(_UTF8_MARK):
            buffered.read(len(_UTF8_MARK))
        with Lines(file, buffered, errors="surrogateescape") as text:
            yield text


def not_empty(file: str, rows: Iterable[T]) -> Iterator[T]:
    """Return ``rows`` unchanged, or raise InputError if there are none."""
    rows = iter(rows)
    first = list(itertools.islice(rows, 1))
    if not first:
        raise InputError(f"{file}: has no rows; add rows or remove it from 'ingest.sources'")
    return itertools.chain(first, rows)
