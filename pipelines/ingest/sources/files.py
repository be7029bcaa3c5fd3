"""Reads plain or compressed text files, with errors that name the file."""

import io
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

import pyarrow as pa

from batchwright.core.errors import InputError
from pipelines.files import readable

T = TypeVar("T")

_UTF8_MARK = b"\xef\xbb\xbf"


@contextmanager
def open_text(file: str) -> Iterator[TextIO]:
    """Open a text file, plain or compressed (.gz, .zst, .bz2, .lz4), without translating newlines.

    Bytes that are not UTF-8 become lone surrogates, so that a bad line rejects only its own row.

    Raises:
        InputError: the file is damaged or is not UTF-8 text.
    """
    with readable(file), pa.input_stream(file, compression="detect") as stream:
        buffered = io.BufferedReader(stream)
        start = buffered.peek(1024)[:1024]
        if b"\0" in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{file}: not UTF-8 text (UTF-16 or binary?); convert it to UTF-8")
        if start.startswith(_UTF8_MARK):
            buffered.read(len(_UTF8_MARK))
        with io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape", newline="") as text:
            yield text


def not_empty(file: str, rows: Iterable[T]) -> Iterator[T]:
    """Return ``rows`` unchanged, or raise InputError if there are none."""
    rows = iter(rows)
    first = list(itertools.islice(rows, 1))
    if not first:
        raise InputError(f"{file}: has no rows; add rows or remove it from 'ingest.sources'")
    return itertools.chain(first, rows)
