"""Pairs: one Parquet file per domain, sorted by unique id. Rejects: the rows that did not become pairs."""

from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.seal import check

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

REJECTS_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)


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


def read_pairs(folder: Path, domain: str, split: Split | None = None) -> pa.Table:
    """Read a domain's pairs, or those of one split, in id order.

    Clusters and negatives refer to pairs by their row number in the ``train`` split.

    Raises:
        InputError: the file is missing, damaged, unsorted or has other columns.
    """
    file = pairs_file(folder, domain)
    table = _read(file, PAIRS_SCHEMA)
    ids = table["id"]
    if len(ids) > 1 and not pc.all(pc.less(ids[:-1], ids[1:])).as_py():
        raise InputError(f"{file}: ids are not sorted and unique; run the stage 'ingest' again")
    return table if split is None else table.filter(pc.equal(table["split"], split)).combine_chunks()


def read_columns(folder: Path, domain: str, *names: str) -> pa.Table:
    """Read some columns of a domain's pairs, in id order.

    Raises:
        InputError: the file is missing or damaged.
    """
    return _read(pairs_file(folder, domain), pa.schema([PAIRS_SCHEMA.field(name) for name in names]), list(names))


def read_rejects(file: Path) -> pa.Table:
    """Read the rejected rows of all sources."""
    return _read(file, REJECTS_SCHEMA)


def _read(file: Path, schema: pa.Schema, columns: list[str] | None = None) -> pa.Table:
    check(file)
    try:
        with pq.ParquetFile(file) as handle:  # read_table would import pandas, which takes a second
            table = handle.read(columns)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run the stage 'ingest' first") from None
    except pa.ArrowInvalid as error:
        raise InputError(f"{file}: not a readable Parquet file ({error}); run the stage 'ingest' again") from None
    if table.schema.remove_metadata() != schema:
        raise InputError(f"{file}: columns are {table.schema.names}, expected {schema.names}")
    return table
