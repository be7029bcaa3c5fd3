"""How many rows of a Parquet file of vectors are read at once, so that texts that are there once take little memory."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from pipelines.files import MOST_TIMES, most_bytes

_ROWS, _BYTES = 512, 256 << 20
_DICTIONARY, _HEADER_BYTES = b"\x15\x04\x15", 16
"""How the header of a page with a dictionary begins, in Thrift's compact protocol, before its decompressed size."""


def rows_at_once(file: str, table: pq.ParquetFile) -> int:
    """Return how many rows hold at most ``_BYTES`` of texts, whichever of a dictionary each of them repeats.

    Raises:
        InputError: texts take far more memory than the file has bytes.
    """
    texts = [column for group in range(table.num_row_groups) for column in _texts(table, group)]
    check_size(file, sum(column.total_uncompressed_size for column in texts))
    longest = max((_longest(file, column) for column in texts), default=0)
    return min(_ROWS, max(1, _BYTES // max(longest, 1)))


def _texts(table: pq.ParquetFile, group: int) -> Iterator[pq.ColumnChunkMetaData]:
    """Yield what the file says about the texts of a row group, if it has rows."""
    paths = [table.schema.column(number).path for number in range(len(table.schema))]
    # An exception in ``column`` would end the process; where there is one, reading a row raises it, too.
    for _ in itertools.islice(table.iter_batches(1, row_groups=[group], columns=["text"]), 1):
        yield table.metadata.row_group(group).column(paths.index("text"))


def check_size(file: str, size: int) -> None:
    """Check how many bytes the texts of a file take.

    Raises:
        InputError: they are far more than those of the file.
    """
    if size > (most := most_bytes(file)):
        raise InputError(
            f"{file}: texts take more than {most:,} bytes, {MOST_TIMES} times its size; remove rows that repeat a text"
        )


def _longest(file: str, column: pq.ColumnChunkMetaData) -> int:
    """Return how long the longest text may be that takes less of the file whenever it is repeated."""
    if "DELTA_BYTE_ARRAY" in column.encodings:  # each text says how much of the one before it repeats
        return int(column.total_uncompressed_size)
    if not column.has_dictionary_page:
        return 0
    with Path(file).open("rb") as content:
        content.seek(max(column.dictionary_page_offset, 0))
        header = content.read(_HEADER_BYTES)
    known = header.startswith(_DICTIONARY)
    return _number(header[len(_DICTIONARY) :]) if known else int(column.total_uncompressed_size)


def _number(content: bytes) -> int:
    """Return the number that seven bits of each byte make, up to the first byte below 128; its last bit is a sign."""
    number = 0
    for place, byte in enumerate(content):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return number >> 1
