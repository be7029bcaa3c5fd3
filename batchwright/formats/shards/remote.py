"""Shards in object storage: each is copied to the scratch folder of this machine when it is first read."""

import tempfile
from pathlib import Path

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256
from batchwright.core.runtime import scratch
from batchwright.core.storage import Storage
from batchwright.formats.shards.manifest import FILE, Shard


def cached(origin: Storage) -> Path:
    """Return the folder for copies of the shards in ``origin``, with their manifest; another manifest has another.

    Raises:
        InputError: there is no manifest.
    """
    with tempfile.TemporaryDirectory() as temporary:
        manifest = Path(temporary, FILE)
        origin.download(FILE, manifest)
        folder = scratch("shards", file_sha256(manifest)[:16]).resolve()
        with atomic_file(folder / FILE) as file:
            file.write_bytes(manifest.read_bytes())
    return folder


def copy_shard(origin: Storage, shard: Shard, file: Path) -> None:
    """Copy a shard to ``file``, whole or not at all.

    Raises:
        InputError: it is not there, or its content is not what the manifest says.
    """
    with atomic_file(file, durable=False) as temporary:
        origin.download(shard.name, temporary)
        if file_sha256(temporary) != shard.sha256:
            raise InputError(f"{origin / shard.name}: content differs from the manifest's sha256; copy it there again")
