"""Memory and disk are checked before a stage begins."""

import shutil
from pathlib import Path

import pytest

from batchwright import by_domain
from batchwright.by_domain import memory
from batchwright.core import room
from batchwright.core.errors import InputError
from batchwright.core.paths import NEGATIVES
from stages.filter import stage as judge
from tests.helpers import plant_vectors, topic_pairs, write_pairs, write_params


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


def test_a_stage_names_its_largest_domain_and_writes_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pairs("small", topic_pairs(10))
    write_pairs("large", topic_pairs(40))
    plant_vectors()
    write_params(workspace)
    monkeypatch.setattr(memory, "A_PAIR", 1e15)
    with pytest.raises(InputError, match=r"domain 'large' needs about 40000000\.\d GB of memory"):
        judge.main()
    assert not NEGATIVES.exists()
    monkeypatch.setattr(memory, "A_PAIR", 0)
    judge.main()
    assert NEGATIVES.exists()


def test_texts_that_lie_in_the_scratch_folder_must_find_room(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pairs("small", topic_pairs(10))
    write_pairs("large", [(f"{n} " * 100, f"{n}") for n in range(3000)])
    usage = shutil.disk_usage(workspace)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=500_000))
    with pytest.raises(InputError, match=r"domain 'large' needs about 0\.0 GB of disk in .*scratch"):
        memory.check_domains(["small", "large"], lambda _: 1.0, 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=5_000_000))
    memory.check_domains(["small", "large"], lambda _: 1.0, 1)


def test_as_many_domains_as_are_done_at_once_must_find_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchwright.core.room.free_memory", lambda: 4e9)
    sizes = {"ants": 1e9, "bees": 3e9, "cats": 2e9}
    monkeypatch.delenv("BEAM_OPTIONS", raising=False)
    memory.check_domains(sizes, sizes.__getitem__, 1)
    with monkeypatch.context() as nothing_is_free:
        nothing_is_free.setattr("batchwright.core.room.free_memory", lambda: 0)
        memory.check_domains([], sizes.__getitem__, 1)
    with pytest.raises(InputError, match=r"domain 'bees' with domain 'cats' needs about 5\.4 GB of memory"):
        memory.check_domains(sizes, sizes.__getitem__, 2)
    monkeypatch.setenv("BEAM_OPTIONS", "--runner=FnApiRunner --direct_num_workers=2")
    with pytest.raises(InputError, match=r"domain 'bees' with domain 'cats' needs about 5\.6 GB of memory"):
        memory.check_domains(sizes, sizes.__getitem__, 1)


def test_large_domains_are_done_one_after_the_other(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchwright.core.room.free_memory", lambda: 4e9)

    def do(pairs: int) -> dict[str, by_domain.Done]:
        inputs = {"ants": 1, "bees": 2}
        return by_domain.do_domains(
            "look", workspace, lambda *_: {}, inputs, memory_of=lambda _: 3e9, size_of=lambda _: pairs, processes=2
        )

    with pytest.raises(InputError, match=r"domain 'bees' with domain 'ants' needs about 6\.4 GB of memory"):
        do(15_000)
    assert list(do(10**9)) == ["ants", "bees"]
