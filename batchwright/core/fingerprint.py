"""Content hashes: of files, of texts, of parameters."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TEXT_KEY_BYTES = 16


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fingerprint(*parts: object) -> str:
    """16 hex digits that change whenever one of the JSON-serialisable ``parts`` does."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def files_fingerprint(paths: Iterable[Path]) -> str:
    """Fingerprint of the content of files, and of all files in folders, compiled Python aside."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return fingerprint([(file.name, file_sha256(file)) for file in files if file.is_file() and file.suffix != ".pyc"])


def content_id(*texts: str) -> str:
    """32 hex digits for a sequence of texts; lengths are part of it, so texts cannot run together."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def text_keys(texts: Iterable[str]) -> NDArray[np.void]:
    """Keys of texts, ``(N,)`` of 16 bytes each; they sort as bytes do."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=TEXT_KEY_BYTES).digest() for text in texts)
    return np.frombuffer(digests, dtype=f"V{TEXT_KEY_BYTES}")
