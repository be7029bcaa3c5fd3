"""The interface of every kind of source: parts that workers read one by one, each yielding raw rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from batchwright.core.params import Params
from pipelines.ingest.sources.sizes import text_size


class Row(NamedTuple):
    """A raw row: values as they are in the source, or the ``fault`` if it could not be read as a row at all.

    ``source`` is its file; ``number`` counts from 1 and is the line number in text files, so that an editor finds it.
    """

    source: str
    number: int
    query: object
    document: object
    domain: object
    negatives: list[object] = []
    fault: str | None = None


class Part(NamedTuple):
    """What one worker reads at a time: a file, or a piece of one, such as a row group."""

    name: str
    piece: int = 0


class Source(Params, ABC):
    """An entry of ``ingest.sources``."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The source's name in results and messages."""

    def files(self) -> list[str]:
        """List the files that it reads; none if they are not in a folder, as those of the hub."""
        return []

    @abstractmethod
    def parts(self) -> list[Part]:
        """List all parts, in an order that does not depend on the machine.

        Raises:
            InputError: there is nothing to read.
        """

    def read_for(self, part: Part) -> list[str]:
        """List the files that decide what is in a part; none if that cannot be told from files, as on the hub."""
        return [part.name]

    def size_of(self, file: str) -> float:
        """Estimate how many bytes a file becomes when it is read."""
        return text_size(file)

    @abstractmethod
    def rows(self, part: Part) -> Iterator[Row]:
        """Read the rows of a part.

        Raises:
            InputError: the part cannot be read, lacks a column or has no rows.
        """


def faulty(source: str, number: int, text: str, fault: str) -> Row:
    """Make a row that could not be read; ``text`` is shown with the reject."""
    return Row(source, number, text, None, None, fault=fault)
