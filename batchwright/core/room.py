"""Memory and disk, checked before hours are spent."""

import shutil
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.runtime import preflight

_CGROUP = Path("/sys/fs/cgroup")


def check_memory(needed: float, what: str) -> None:
    """Check that ``needed`` bytes of memory are free for ``what``; where the system does not say, they are.

    Raises:
        InputError: fewer are free.
    """
    free = free_memory()
    if free is not None and free < needed:
        _refuse(what, needed, free, "memory", "free some")


def check_disk(needed: float, folder: Path, what: str) -> None:
    """Check that ``needed`` bytes are free on the disk of ``folder``, which need not be there yet.

    Raises:
        InputError: fewer are free.
    """
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        _refuse(what, needed, free, f"disk in {folder}", "free some or point BATCHWRIGHT_SCRATCH to another disk")


def free_memory() -> float | None:
    """Bytes of memory that are free on this machine, or in this container if it may have less."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        machine = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    try:
        limit, used = ((_CGROUP / f"memory.{name}").read_text(encoding="ascii").strip() for name in ("max", "current"))
    except OSError:
        return machine
    return machine if limit == "max" else min(machine, int(limit) - int(used))


def _refuse(what: str, needed: float, free: float, kind: str, advice: str) -> None:
    if preflight():
        raise InputError(
            f"{what} needs about {needed / 1e9:.1f} GB of {kind}, and {free / 1e9:.1f} GB are free; {advice}, or set "
            "BATCHWRIGHT_PREFLIGHT=0 to go on regardless"
        )
