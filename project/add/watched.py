"""Bring files into the folder that DVC watches."""

import os
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.paths import RAW_PAIRS, unwatched


def bring_in(path: Path) -> Path:
    """Return where DVC watches a file or a folder: where it is, or links in ``raw/pairs``, which this makes.

    Raises:
        InputError: something else has its name there.
    """
    if not unwatched(path, RAW_PAIRS):
        return Path(os.path.relpath(path))
    target = RAW_PAIRS / path.name
    files = [file for file in sorted(path.rglob("*")) if file.is_file()] if path.is_dir() else [path]
    for file in files:
        link = target / file.relative_to(path)
        if link.is_symlink() and link.resolve() == file.resolve():
            continue
        if link.exists() or link.is_symlink():
            raise InputError(f"{link}: is there already; rename {path}, or remove that one")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.resolve())
    return target
