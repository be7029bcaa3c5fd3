"""Memory and disk are checked before a stage begins."""

from pathlib import Path

import pytest

from batchwright.core import room
from batchwright.core.errors import InputError


def test_too_little_disk_is_refused_and_a_folder_need_not_be_there(tmp_path: Path) -> None:
    room.check_disk({tmp_path / "not/yet": 1}, "packing")
    with pytest.raises(InputError, match=r"packing needs about 1000000000.0 GB of disk in .*; free some, or"):
        room.check_disk({tmp_path / "not/yet": 6e17, tmp_path: 4e17}, "packing")


def test_too_little_memory_is_refused_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    room.check_memory(1, "it")
    with pytest.raises(
        InputError, match=r"it needs about .* GB of memory, and .* GB are free; .* BATCHWRIGHT_PREFLIGHT=0"
    ):
        room.check_memory(1e18, "it")
    monkeypatch.setenv("BATCHWRIGHT_PREFLIGHT", "0")
    room.check_memory(1e18, "it")


def test_a_container_has_its_own_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = room.free_memory()
    assert machine is not None and machine > 10**8
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("4700000\n")
    (tmp_path / "memory.stat").write_text("anon 4000000\nactive_file 300000\ninactive_file 400000\n")
    monkeypatch.setattr(room, "_CGROUP", tmp_path)
    assert room.free_memory() == 1_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert room.free_memory() > 10**8
