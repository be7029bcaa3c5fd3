"""What ``dvc.lock`` and DVC's cache say of the files that stages wrote."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import yaml

from batchwright.core.errors import InputError

LOCK = Path("dvc.lock")
_DIRECTORY = ".dir"


def locked_outputs() -> dict[Path, str]:
    """Return the MD5 of each output of the stages, as DVC knows it; that of a folder ends with ``.dir``.

    Raises:
        InputError: ``dvc.lock`` is damaged.
    """
    if not LOCK.exists():
        return {}
    try:
        stages = yaml.safe_load(LOCK.read_text(encoding="utf-8"))["stages"]
        return {Path(out["path"]): out["md5"] for stage in stages.values() for out in stage.get("outs", [])}
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        raise InputError(f"{LOCK}: damaged; take it from git: git checkout {LOCK}") from None


def is_as_locked(path: Path, md5: str) -> bool:
    """Whether a file or a folder has the content that DVC knows."""
    if not md5.endswith(_DIRECTORY):
        return path.is_file() and _md5(path) == md5
    files = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
    listing = [{"md5": _md5(path / file), "relpath": file.as_posix()} for file in files]
    return hashlib.md5(json.dumps(listing, sort_keys=True).encode()).hexdigest() + _DIRECTORY == md5


def forget(md5: str) -> int:
    """Remove from DVC's cache what it has of an output and is damaged there, too; return the number of files.

    DVC trusts its cache, and would link a damaged file to the output that a stage has made anew.
    """
    if (cache := _cache()) is None:
        return 0
    members = [md5]
    if md5.endswith(_DIRECTORY) and (listing := _cached(cache, md5)).exists():
        members += _members(listing)
    damaged = [file for each in members if (file := _cached(cache, each)).exists() and not _sound(file, each)]
    for file in damaged:
        file.chmod(0o644)
        file.unlink()
    return len(damaged)


def _members(listing: Path) -> list[str]:
    try:
        return [entry["md5"] for entry in json.loads(listing.read_bytes())]
    except (ValueError, KeyError, TypeError):
        return []


def _sound(file: Path, md5: str) -> bool:
    return _md5(file) == md5.removesuffix(_DIRECTORY)


def _cached(cache: Path, md5: str) -> Path:
    return cache / "files/md5" / md5[:2] / md5[2:]


def _cache() -> Path | None:
    found = subprocess.run([sys.executable, "-m", "dvc", "cache", "dir"], capture_output=True, text=True, check=False)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def _md5(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
