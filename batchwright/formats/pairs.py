"""Files of pairs and of rejects."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from batchwright.core.atomic import atomic_file, check
from batchwright.core.errors import InputError
from batchwright.formats.metadata import NOTHING

Split = Literal["train", "dev", "test"]

PAIRS_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("domain", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("negatives", pa.list_(pa.string()), nullable=False),
    ]
)

SCORED_PAIRS = PAIRS_SCHEMA.append(pa.field("scores", pa.list_(pa.float32()), nullable=False))
"""With a teacher's ``scores`` of the document and of each of ``negatives``, in this order, NaN where it has none; an
empty list if it has none at all. Domains without scores lack the column, and are read as if all lists were empty."""

ANNOTATED_PAIRS = SCORED_PAIRS.append(pa.field("weight", pa.float32(), nullable=False)).append(
    pa.field("metadata", pa.string(), nullable=False)
)
"""With each pair's ``weight`` in the loss, 1 if its source says none, and ``metadata``, which ``read_metadata`` reads.
Domains with neither lack these columns, likewise."""

SAYS_NOTHING = {"scores": [], "weight": 1.0, "metadata": NOTHING}
"""What a column holds for pairs of which a source says nothing."""

_SCHEMAS = PAIRS_SCHEMA, SCORED_PAIRS, ANNOTATED_PAIRS

REJECTS_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)

ROWS = 16_384
"""Pairs of a row group, and of what is read at a time, at most."""


@lru_cache(maxsize=4096)
def file_stem(domain: str) -> str:
    """Encode a domain's name as a file name; ``domain_of`` decodes it.

    It has no dot and no slash, so that it is no file or folder of ours and lies in the folder where it is put.
    """
    return quote(domain, safe=" ").replace(".", "%2E")


def domain_of(stem: str) -> str:
    """The domain whose files are named ``stem``."""
    return unquote(stem)


def pairs_file(folder: Path, domain: str) -> Path:
    """The file that holds a domain's pairs."""
    return folder / f"{file_stem(domain)}.parquet"


def domains(folder: Path) -> list[str]:
    """All domains in a pairs folder, sorted.

    Raises:
        InputError: there are none.
    """
    found = sorted(domain_of(file.stem) for file in folder.glob("*.parquet"))
    if not found:
        raise InputError(f"{folder}: no pairs here; run the stage 'ingest' first")
    return found


def write_table(path: Path, table: pa.Table, schema: pa.Schema) -> None:
    """Write the columns of ``schema`` from ``table`` as Parquet, atomically."""
    with atomic_file(path) as temporary:
        pq.write_table(table.select(schema.names).cast(schema), temporary, compression="zstd")


def scan_pairs(
    folder: Path, domain: str, split: Split | None = None, columns: Sequence[str] = PAIRS_SCHEMA.names
) -> Iterator[pa.RecordBatch]:
    """Read a domain's pairs, or those of one split, in id order, some thousands at a time.

    Clusters and negatives refer to pairs by their row number in the ``train`` split. All texts of a domain may be more
    than memory holds, and more than one Arrow array of ``string`` holds, which is 2 GiB.

    Raises:
        InputError: the file is missing, damaged, unsorted or has other columns.
    """
    file, last = pairs_file(folder, domain), None
    with _open(file, *_SCHEMAS) as table:
        for batch in _batches(table, range(table.num_row_groups), ["id", *columns]):
            ids = batch["id"]
            following = pa.concat_arrays([pa.array([last] if last is not None else [], pa.string()), ids])
            if pc.any(pc.greater_equal(following[:-1], following[1:])).as_py():
                raise InputError(f"{file}: ids are not sorted and unique; run the stage 'ingest' again")
            last = following[-1].as_py() if len(following) else None
            yield _of_split(batch, split).select(columns)


def count_row_groups(folder: Path, domain: str) -> int:
    """Return how many row groups a domain's file has.

    Raises:
        InputError: the file is missing, damaged or has other columns.
    """
    with _open(pairs_file(folder, domain), *_SCHEMAS) as table:
        return int(table.num_row_groups)


def count_pairs(folder: Path, domain: str) -> int:
    """Return how many pairs of all splits a domain has.

    Raises:
        InputError: the file is missing, damaged or has other columns.
    """
    with _open(pairs_file(folder, domain), *_SCHEMAS) as table:
        return int(table.metadata.num_rows)


def scan_row_group(
    folder: Path, domain: str, group: int, split: Split, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Read what ``scan_pairs`` yields of one row group, without a look at the order of ids.

    Raises:
        InputError: the file is missing, damaged or has other columns.
    """
    with _open(pairs_file(folder, domain), *_SCHEMAS) as table:
        for batch in _batches(table, [group], columns):
            yield _of_split(batch, split).select(columns)


def scan_texts(folder: Path, domain: str, column: str, split: Split | None = None) -> Iterator[str]:
    """Read one column of what ``scan_pairs`` yields."""
    return texts_of(scan_pairs(folder, domain, split, [column]))


def texts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Read the texts of batches of one column."""
    return (text for batch in batches for text in batch[0].to_pylist())


def read_pairs(folder: Path, domain: str, split: Split | None = None) -> pa.Table:
    """Read all that ``scan_pairs`` yields into memory.

    Raises:
        InputError: the file is missing, damaged, unsorted or has other columns.
    """
    return pa.Table.from_batches(scan_pairs(folder, domain, split), PAIRS_SCHEMA)


def read_columns(folder: Path, domain: str, *names: str) -> pa.Table:
    """Read some columns of a domain's pairs, in id order.

    Raises:
        InputError: the file is missing or damaged.
    """
    with _open(pairs_file(folder, domain), *_SCHEMAS) as table:
        return table.read(list(names))


def read_rejects(file: Path) -> pa.Table:
    """Read the rejected rows of all sources."""
    with _open(file, REJECTS_SCHEMA) as table:
        return table.read()


def _of_split(batch: pa.RecordBatch, split: Split | None) -> pa.RecordBatch:
    return batch if split is None else batch.filter(pc.equal(batch["split"], split))


def _batches(table: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read ``columns`` and ``split``, one row group after the other.

    Long texts make batches of many rows too large, but not row groups.
    """
    names = list(dict.fromkeys([*columns, "split"]))
    lacking = [name for name in ANNOTATED_PAIRS.names if name in names and name not in table.schema_arrow.names]
    several = len(groups) > 1  # threads cost more than they save where there is little to read
    for group in groups:
        for batch in table.iter_batches(ROWS, row_groups=[group], columns=names, use_threads=several):
            yield _completed(batch, lacking) if lacking else batch


def _completed(batch: pa.RecordBatch, lacking: Sequence[str]) -> pa.RecordBatch:
    """Append columns that a file lacks, in which no pair has anything."""
    for name in lacking:
        field = ANNOTATED_PAIRS.field(name)
        batch = batch.append_column(field, pa.repeat(pa.scalar(SAYS_NOTHING[name], field.type), len(batch)))
    return batch


@contextmanager
def _open(file: Path, *schemas: pa.Schema) -> Iterator[pq.ParquetFile]:
    """Open a file with the columns of one of ``schemas``."""
    check(file)
    try:
        # ``read_table`` would import pandas, which takes a second; not mapped, batches leave behind all that was read.
        with pq.ParquetFile(file, memory_map=True) as table:
            if table.schema_arrow.remove_metadata() not in schemas:
                raise InputError(f"{file}: columns are {table.schema_arrow.names}, expected {schemas[0].names}")
            yield table
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run the stage 'ingest' first") from None
    except pa.ArrowInvalid as error:
        raise InputError(f"{file}: not a readable Parquet file ({error}); run the stage 'ingest' again") from None


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
        return [InMemory(list(scan_pairs(folder, domain, split, ANNOTATED_PAIRS.names)))]
    for _ in scan_pairs(folder, domain, split, []):  # checks the order of ids
        pass
    return [RowGroup(folder, domain, number, split) for number in range(count_row_groups(folder, domain))]
