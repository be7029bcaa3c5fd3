"""Find damage: compare artifacts with the checksums that were written when they were made, theirs or DVC's."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from batchwright.core import atomic
from batchwright.core.errors import InputError
from batchwright.core.terminal import bar

LOCK = Path("dvc.lock")
_DIRECTORY = ".dir"
"""What DVC's checksum of a folder ends with."""
_MOST_SHOWN = 20
_ADVICE = "remove what is damaged with: batchwright verify --mend, then make it again with: dvc repro --pull"


class Fault(NamedTuple):
    """A file or folder that is not what it was, in ``artifact``."""

    artifact: Path
    place: Path
    reason: str


def verify(artifact: Path | None = None, *, mend: bool = False) -> str:
    """Check all outputs of the stages that are here, or one artifact, a file or a folder.

    Folders have checksums of their own; files are compared with ``dvc.lock``. With ``mend``, damaged artifacts are
    removed, here and in DVC's cache, so that they will be made anew or pulled.

    Raises:
        InputError: something is damaged, or there is nothing to compare with.
    """
    outputs = locked_outputs()
    chosen = [path for path in outputs if artifact is None or _within(path, artifact)]
    if artifact is not None and not chosen:
        chosen = [artifact]
    there = [path for path in chosen if path.exists()]
    if not there:
        raise InputError(f"{artifact or 'dvc.lock'}: nothing to verify here; run: dvc repro, or dvc pull")
    faults = [
        fault for path in bar(there, desc="verify", unit="artifact") for fault in _faults(path, outputs.get(path))
    ]
    if not faults:
        absent = [path for path in chosen if not path.exists()]
        told = f"; {len(absent)} more of {LOCK} are not here, such as {absent[0]}: dvc repro --pull" if absent else ""
        return f"{len(there)} artifacts are as they were made{told}"
    if not mend:
        shown = [f"{fault.place}: {fault.reason}" for fault in faults[:_MOST_SHOWN]]
        more = [f"and {len(faults) - _MOST_SHOWN} more"] if len(faults) > _MOST_SHOWN else []
        raise InputError("\n".join([f"{len(faults)} files are not as they were made", *shown, *more, _ADVICE]))
    return _mend(sorted({fault.artifact for fault in faults}), outputs)


def _within(path: Path, artifact: Path) -> bool:
    return path.is_relative_to(artifact) or artifact.is_relative_to(path)


def _faults(path: Path, md5: str | None) -> Iterator[Fault]:
    if path.is_dir() and ((path / atomic.CHECKSUMS).exists() or md5 is None):
        yield from (Fault(path, place, reason) for place, reason in atomic.faults(path))
    elif md5 is None:
        yield Fault(path, path, "dvc.lock does not know it, and it has no checksum")
    elif not is_as_locked(path, md5):
        yield Fault(path, path, "is not what dvc.lock says: damaged, or changed by hand")


def _mend(artifacts: list[Path], outputs: dict[Path, str]) -> str:
    cached = 0
    for path in artifacts:
        cached += forget(outputs[path]) if path in outputs else 0
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    named = ", ".join(map(str, artifacts))
    return f"removed {named}, and {cached} damaged files from DVC's cache; make them again with: dvc repro --pull"


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
    damaged = [file for member in members if (file := _cached(cache, member)).exists() and not _sound(file, member)]
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
    done = subprocess.run([sys.executable, "-m", "dvc", "cache", "dir"], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def _md5(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
