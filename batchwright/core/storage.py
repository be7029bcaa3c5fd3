"""Folders on this machine and in object storage, such as ``s3://bucket/folder``, through Arrow's file systems."""

import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from batchwright.core.atomic import CHECKSUMS, atomic_dir
from batchwright.core.errors import InputError


@dataclass(frozen=True)
class Storage:
    """A folder at ``path`` of an Arrow ``filesystem``; it need not be there yet, and it can be pickled."""

    filesystem: fs.FileSystem
    path: str

    @classmethod
    def at(cls, place: Path | str) -> "Storage":
        """Return the storage at a path, or at a URI that Arrow knows (``s3``, ``gs``, ``abfs``, ``hdfs``).

        ``AWS_ENDPOINT_URL`` names a server other than Amazon's, as it does for Amazon's own tools.

        Raises:
            InputError: there is no such file system, or it does not answer.
        """
        if not is_remote(place):
            return cls(fs.LocalFileSystem(), str(Path(place).resolve()))
        uri = str(place)
        server = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        try:
            if uri.startswith("s3://") and server:  # Arrow reads all of Amazon's variables but these
                return cls(fs.S3FileSystem(endpoint_override=server), uri.removeprefix("s3://").strip("/"))
            filesystem, path = fs.FileSystem.from_uri(uri)
        except (ValueError, OSError) as error:
            raise InputError(f"{uri}: cannot be reached ({error})") from None
        return cls(filesystem, path.rstrip("/"))

    @property
    def local(self) -> Path | None:
        """The folder on this machine, or None if it is elsewhere."""
        return Path(self.path) if isinstance(self.filesystem, fs.LocalFileSystem) else None

    def __truediv__(self, name: str) -> "Storage":
        return Storage(self.filesystem, f"{self.path}/{name}")

    def __str__(self) -> str:
        return self.path if self.local else f"{self.filesystem.type_name}://{self.path}"

    def names(self) -> list[str]:
        """Return the names of what is in the folder, in their order; none if it is not there."""
        selector = fs.FileSelector(self.path, allow_not_found=True)
        return sorted(info.base_name for info in self.filesystem.get_file_info(selector))

    @contextmanager
    def publish(self, name: str) -> Iterator[Path]:
        """Yield a folder on this machine; it becomes the folder ``name`` here if the block succeeds.

        As with ``atomic_dir``, it has checksums. Object storage gets them last: a folder without them is not whole.
        """
        if self.local:
            with atomic_dir(self.local / name) as folder:
                yield folder
            return
        with tempfile.TemporaryDirectory() as temporary:
            finished = Path(temporary, name)
            with atomic_dir(finished) as folder:
                yield folder
            self.remove(name)
            for file in sorted(finished.iterdir(), key=lambda file: file.name == CHECKSUMS):
                fs.copy_files(str(file), f"{self.path}/{name}/{file.name}", destination_filesystem=self.filesystem)

    @contextmanager
    def fetch(self, name: str) -> Iterator[Path]:
        """Yield the folder ``name`` on this machine; from elsewhere, a copy for the length of the block."""
        if self.local:
            yield self.local / name
            return
        with tempfile.TemporaryDirectory() as temporary:
            fs.copy_files(f"{self.path}/{name}", temporary, source_filesystem=self.filesystem)
            yield Path(temporary)

    def download(self, name: str, file: Path) -> None:
        """Copy the file ``name`` to ``file`` on this machine.

        Raises:
            InputError: there is no such file, or it cannot be read.
        """
        try:
            fs.copy_files(f"{self.path}/{name}", str(file), source_filesystem=self.filesystem)
        except OSError as error:
            raise InputError(f"{self / name}: cannot be read ({error})") from None

    def remove(self, *names: str) -> None:
        """Remove the files and folders of these names; some may be gone."""
        for name in names:
            (self / name).delete()

    def delete(self) -> None:
        """Remove this folder, or this file, if it is there."""
        found = self.filesystem.get_file_info(self.path).type
        if found == fs.FileType.Directory:
            self.filesystem.delete_dir(self.path)
        elif found == fs.FileType.File:
            self.filesystem.delete_file(self.path)


def is_remote(place: Path | str) -> bool:
    """Whether a place is a URI, and not a path."""
    return "://" in str(place)


def check_disk(needed: Mapping[Path, float], what: str) -> None:
    """Check that so many bytes are free below each folder, which need not be there yet; folders may share a disk.

    Raises:
        InputError: fewer are free.
    """
    folders: dict[int, Path] = {}
    sums: Counter[int] = Counter()
    for folder, size in needed.items():
        existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        disk = existing.stat().st_dev
        folders[disk] = existing
        sums[disk] += math.ceil(size)
    for disk, existing in folders.items():
        free = shutil.disk_usage(existing).free
        if free < sums[disk]:
            raise InputError(
                f"{what} needs about {sums[disk] / 1e9:.1f} GB of disk in {existing}, and {free / 1e9:.1f} GB are "
                "free; free some, such as by: dvc gc --workspace"
            )
