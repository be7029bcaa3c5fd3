"""Estimates how many bytes a compressed file becomes, before all of it is read."""

from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from pipelines.files import most_bytes

_SAMPLE = 4 << 20
_CODECS = {".bz2": "bz2", ".gz": "gzip", ".lz4": "lz4", ".zst": "zstd"}
"""By the suffixes that ``open_text`` knows."""


def text_size(file: str) -> float:
    """Estimate the bytes of a text file, plain or compressed, by its beginning.

    A file that is damaged there counts as plain: whoever reads it says what is wrong.
    """
    codec, size = _CODECS.get(Path(file).suffix), Path(file).stat().st_size
    if codec is not None:
        # What frames say of their size would be less: gzip's is modulo 4 GiB and the last one's, others may have none.
        with (
            suppress(OSError, pa.ArrowException),
            pa.OSFile(file) as compressed,
            pa.CompressedInputStream(compressed, codec) as stream,
        ):
            read = len(stream.read(_SAMPLE))
            return bounded(file, size * read / max(compressed.tell(), 1))
    return size


def bounded(file: str, size: float) -> float:
    """Bound what a file is said to become: at least its size, at most what may come out of it."""
    return min(max(size, Path(file).stat().st_size), most_bytes(file))
