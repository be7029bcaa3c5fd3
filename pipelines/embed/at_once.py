"""How many rows of a Parquet file of vectors are read at once, so that texts that are there once take little memory."""

from pathlib import Path

import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from batchwright.core.untrusted_arrow import chunks
from pipelines.files import MOST_TIMES, most_bytes

_ROWS, _BYTES = 512, 256 << 20
_DICTIONARY, _HEADER_BYTES = b"\x15\x04\x15", 16
"""How the header of a page with a dictionary begins, in Thrift's compact protocol, before its decompressed size."""


def rows_at_once(file: str, table: pq.ParquetFile) -> int:
    """Return how many rows hold at most ``_BYTES`` of texts, whichever of a dictionary each of them repeats.

    Raises:
        InputError: texts take far more memory than the file has bytes.
    """
    texts = list(chunks(table, ["text"]))
    check_size(file, sum(column.total_uncompressed_size for column in texts))
    longest = max((_longest(file, column) for column in texts), default=0)
    return min(_ROWS, max(1, _BYTES // max(longest, 1)))


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
    told = column.has_dictionary_page  # older writers do not tell of one, which is then the first page of data
    with Path(file).open("rb") as content:
        content.seek(max(column.dictionary_page_offset if told else column.data_page_offset, 0))
        header = content.read(_HEADER_BYTES)
    if header.startswith(_DICTIONARY):
        return _number(header[len(_DICTIONARY) :])
    return int(column.total_uncompressed_size) if told else 0


def _number(content: bytes) -> int:
    """Return the number that seven bits of each byte make, up to the first byte below 128; its last bit is a sign."""
    number = 0
    for place, byte in enumerate(content):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return number >> 1
