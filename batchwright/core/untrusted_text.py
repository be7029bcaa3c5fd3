"""Text from outside: lines, rows of separated values and JSON, none of them endless or ambiguous."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from batchwright.core.errors import InputError

MOST_CHARACTERS = 64 << 20
"""The most characters of a line, or of a row of text with its line ends, and bytes of a row of Arrow or Parquet."""

csv.field_size_limit(2**31 - 1)  # the default rejects documents of more than 128 kB


def check_row(file: str, number: int, size: int, unit: str = "line") -> None:
    """Check the size of a row; ``number`` is the number of a line or row, as ``unit`` says.

    Raises:
        InputError: it is longer than ``MOST_CHARACTERS``.
    """
    if size > MOST_CHARACTERS:
        raise InputError(
            f"{file}: {unit} {number}: the row is longer than {MOST_CHARACTERS:,} characters; cut its texts"
        )


class Lines(io.TextIOWrapper):
    """The text of a binary file, with its line ends; a line longer than ``MOST_CHARACTERS`` raises InputError."""

    def __init__(self, file: str, buffer: IO[bytes], encoding: str = "utf-8", errors: str = "strict") -> None:
        super().__init__(buffer, encoding=encoding, errors=errors, newline="")
        self._file, self._number = file, 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(MOST_CHARACTERS + 1 if size < 0 else size)
        self._number += 1
        check_row(self._file, self._number, len(line))
        return line

    def __next__(self) -> str:  # type: ignore[override]
        if line := self.readline():
            return line
        raise StopIteration


class Records:
    """Iterates over the fields of each row, as ``csv.reader`` does; one longer than ``MOST_CHARACTERS`` is refused.

    ``first`` is the line that the last row begins on, and ``raw`` its lines.
    """

    def __init__(self, file: str, lines: Iterable[str], **dialect: Any) -> None:
        self.first, self.raw = 1, list[str]()
        self._file, self._reader = file, csv.reader(self._remembered(lines), **dialect)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        self.first = self._reader.line_num + 1
        self.raw.clear()
        return next(self._reader)

    def _remembered(self, lines: Iterable[str]) -> Iterator[str]:
        length = 0
        for line in lines:
            length = len(line) + (length if self.raw else 0)
            check_row(self._file, self.first, length)
            self.raw.append(line)
            yield line


class RepeatedKeyError(ValueError):
    """A key is there twice."""


def parse_json(text: str) -> Any:
    """Parse one JSON value. Python itself would take the last of two values for a key, without a word.

    Raises:
        RepeatedKeyError: a key is there twice.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKeyError("a key is there twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
