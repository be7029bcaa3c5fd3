"""Memory and disk, checked before hours are spent."""

import math
import shutil
from collections import Counter
from collections.abc import Mapping
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
        _refuse(what, needed, free, "memory")


def check_disk(needed: Mapping[Path, float], what: str) -> None:
    """Check that so many bytes are free below each folder, which need not be there yet; folders may share a disk.

    Raises:
        InputError: fewer are free.
    """
    disks: dict[int, Path] = {}
    sums: Counter[int] = Counter()
    for folder, count in needed.items():
        there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
        disk = there.stat().st_dev
        disks[disk] = there
        sums[disk] += math.ceil(count)
    for disk, there in disks.items():
        free = shutil.disk_usage(there).free
        if free < sums[disk]:
            _refuse(what, sums[disk], free, f"disk in {there}")


def free_memory() -> float | None:
    """Bytes of memory that are free on this machine, or in its control group (version 2) if that may have less."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        machine = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    try:
        limit, used, stat = (
            (_CGROUP / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current", "stat")
        )
    except OSError:
        return machine
    if limit.strip() == "max":
        return machine
    parts = dict(line.split() for line in stat.splitlines())
    cache = sum(int(parts.get(name, 0)) for name in ("active_file", "inactive_file", "slab_reclaimable"))
    return min(machine, int(limit) - int(used) + cache)


def _refuse(what: str, needed: float, free: float, kind: str) -> None:
    if preflight():
        raise InputError(
            f"{what} needs about {needed / 1e9:.1f} GB of {kind}, and {free / 1e9:.1f} GB are free; free some, or set "
            "BATCHWRIGHT_PREFLIGHT=0 to go on regardless"
        )
