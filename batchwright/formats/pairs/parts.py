"""Parts of a domain's pairs, each read by the process that works on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from batchwright.formats.pairs.files import Split, count_row_groups, pairs_file, scan_pairs, scan_row_group, texts_of

_FEW_BYTES = 1 << 20


class PairsPart(Protocol):
    """Some thousands of a domain's pairs, in id order; can be pickled."""

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns, as often as needed."""


@dataclass(frozen=True)
class InMemory:
    """Pairs that have been read."""

    batches: Sequence[pa.RecordBatch]

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Select some columns."""
        return (batch.select(columns) for batch in self.batches)


@dataclass(frozen=True)
class RowGroup:
    """The pairs of one split in a row group of a domain's file."""

    folder: Path
    domain: str
    number: int
    split: Split

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns from the file."""
        return scan_row_group(self.folder, self.domain, self.number, self.split, columns)


@dataclass(frozen=True)
class Texts:
    """The texts of one column of a part."""

    part: PairsPart
    column: str

    def __iter__(self) -> Iterator[str]:
        return texts_of(self.part.read([self.column]))


def pair_parts(folder: Path, domain: str, split: Split) -> list[PairsPart]:
    """Return the parts of what ``scan_pairs`` yields.

    A small file is read here and once only, because opening it takes most of the time.

    Raises:
        InputError: the file is missing, damaged, unsorted or has other columns.
    """
    file = pairs_file(folder, domain)
    if not file.exists() or file.stat().st_size <= _FEW_BYTES:
        return [InMemory(list(scan_pairs(folder, domain, split)))]
    for _ in scan_pairs(folder, domain, split, []):  # checks the order of ids
        pass
    return [RowGroup(folder, domain, number, split) for number in range(count_row_groups(folder, domain))]
