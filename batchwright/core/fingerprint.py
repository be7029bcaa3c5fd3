"""Content hashes of files, texts and parameters."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.runtime import workers

TEXT_KEY_BYTES = 16
_MANY_BYTES = 16 << 20


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def files_sha256(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of the bytes of each file; large ones are hashed several at a time."""
    if len(paths) < 2 or sum(path.stat().st_size for path in paths) < _MANY_BYTES:
        return list(map(file_sha256, paths))
    with ThreadPoolExecutor(workers()) as pool:
        return list(pool.map(file_sha256, paths))


def fingerprint(*parts: object) -> str:
    """Hash JSON-serialisable ``parts`` into 16 hex digits, which change whenever a part does."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def files_fingerprint(paths: Iterable[Path]) -> str:
    """Fingerprint of the names and contents of files; folders are read recursively, without ``.pyc`` files."""
    found = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    files = [file for file in found if file.is_file() and file.suffix != ".pyc"]
    return fingerprint([(file.name, digest) for file, digest in zip(files, files_sha256(files), strict=True)])


def code_fingerprint(package: Path) -> str:
    """Fingerprint of the code in a package's folder and of this library: work in progress must not survive either."""
    return files_fingerprint([Path(__file__).parents[1], package])


def versions(*packages: str) -> list[str]:
    """Names and versions of those of ``packages`` that are installed: what they computed must not survive them."""
    return [f"{name} {found.version}" for name in packages for found in distributions(name=name)]


def content_id(*texts: str) -> str:
    """Hash a sequence of texts into 32 hex digits; lengths are hashed too, so that texts cannot run together."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def text_keys(texts: Iterable[str]) -> NDArray[np.void]:
    """Hash texts into 16-byte keys ``(N,)``, in the order of the texts."""
    digests = bytearray()
    for text in texts:
        digests += hashlib.blake2b(text.encode(), digest_size=TEXT_KEY_BYTES).digest()
    return np.frombuffer(digests, dtype=f"V{TEXT_KEY_BYTES}")
