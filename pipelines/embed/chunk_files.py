"""Encoded chunks on disk: an array and its SHA-256, so that no damaged one is used."""

import hashlib
import io
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError

SUFFIX = ".chunk"
_DIGEST = hashlib.sha256().digest_size


def save_chunk(file: Path, vectors: NDArray[np.float16]) -> None:
    """Write the vectors ``(n, d)`` of a chunk, atomically."""
    buffer = io.BytesIO()
    np.save(buffer, vectors)
    with atomic_file(file) as temporary:
        temporary.write_bytes(buffer.getvalue() + hashlib.sha256(buffer.getvalue()).digest())


def load_chunk(file: Path) -> NDArray[np.float16]:
    """Read what ``save_chunk`` wrote.

    Raises:
        InputError: the file is damaged.
    """
    content = file.read_bytes()
    array, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(array).digest() != digest:
        raise InputError(f"{file}: damaged; run the stage 'embed' again, which encodes these texts anew")
    vectors: NDArray[np.float16] = np.load(io.BytesIO(array))
    return vectors


def sound(file: Path) -> bool:
    """Whether the file is there and as it was written; a damaged one is set aside, with a warning."""
    if not file.exists():
        return False
    try:
        load_chunk(file)
    except InputError:
        file.replace(file.with_suffix(".damaged"))
        print(f"warning: {file}: damaged, and set aside; its texts are encoded again", file=sys.stderr)
        return False
    return True
