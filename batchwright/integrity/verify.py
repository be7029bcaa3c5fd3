"""Compare artifacts with the checksums that were written when they were made."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from batchwright.core import atomic
from batchwright.core.bar import bar
from batchwright.core.errors import InputError
from batchwright.integrity.locked import forget, is_as_locked, locked_outputs

_MOST_SHOWN = 20


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
    found = [fault for path in bar(there, desc="verify", unit="artifact") for fault in _faults(path, outputs.get(path))]
    if not found:
        return f"{len(there)} artifacts are as they were made"
    if not mend:
        shown = [f"{fault.place}: {fault.reason}" for fault in found[:_MOST_SHOWN]]
        more = [f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []
        raise InputError("\n".join([f"{len(found)} files are not as they were made", *shown, *more, _ADVICE]))
    return _mend(sorted({fault.artifact for fault in found}), outputs)


_ADVICE = "remove what is damaged with: batchwright verify --mend, then make it again with: dvc repro --pull"


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
