"""Damage to an artifact's files is noticed."""

import subprocess
from pathlib import Path

import pytest

from batchwright.core.atomic import CHECKSUMS, atomic_dir, check, faults
from batchwright.core.errors import InputError


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    with atomic_dir(tmp_path / "artifact") as folder:
        (folder / "deep").mkdir()
        (folder / "deep/a.npy").write_bytes(bytes(range(100)))
        (folder / "b.json").write_text("{}")
    return tmp_path / "artifact"


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    file.write_bytes(bytes(content))


def test_checksums_are_those_that_sha256sum_checks(artifact: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--quiet", CHECKSUMS], cwd=artifact, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert list(faults(artifact)) == []
    check(artifact / "deep/a.npy")


@pytest.mark.parametrize("name", ["deep/a.npy", "b.json"])
def test_a_flipped_bit_is_noticed_when_the_file_is_opened_and_by_a_search(artifact: Path, name: str) -> None:
    check(artifact / name)
    flip(artifact / name, 13)
    with pytest.raises(InputError, match=f"{name}: damaged, its content is not what"):
        check(artifact / name)
    assert [place for place, _ in faults(artifact)] == [artifact / name]


def test_a_flipped_bit_in_the_checksums_is_noticed(artifact: Path) -> None:
    for bit in range(0, 8 * (artifact / CHECKSUMS).stat().st_size, 7):
        flip(artifact / CHECKSUMS, bit)
        assert list(faults(artifact)), bit
        flip(artifact / CHECKSUMS, bit)
    assert list(faults(artifact)) == []


def test_checksums_of_an_artifact_within_another_are_one_of_its_files(tmp_path: Path) -> None:
    with atomic_dir(tmp_path / "outer") as folder, atomic_dir(folder / "inner") as inner:
        (inner / "a").write_text("a")
    sums = tmp_path / "outer/inner" / CHECKSUMS
    assert list(faults(tmp_path / "outer")) == []
    flip(sums, 13)
    assert [place for place, _ in faults(tmp_path / "outer")] == [sums]


def test_names_may_hold_what_other_systems_take_for_the_end_of_a_line(tmp_path: Path) -> None:
    with atomic_dir(tmp_path / "artifact") as folder:
        (folder / "a\u2028b\x0bc").touch()
    assert list(faults(tmp_path / "artifact")) == []


def test_missing_and_foreign_files_are_named(artifact: Path) -> None:
    (artifact / "b.json").unlink()
    (artifact / "c").write_text("")
    assert [(place.name, reason.split(" ")[0]) for place, reason in faults(artifact)] == [
        ("b.json", "missing"),
        ("c", "is"),
    ]
    with pytest.raises(InputError, match="is not one of the files"):
        check(artifact / "c")


def test_large_files_are_left_to_the_search(artifact: Path) -> None:
    flip(artifact / "deep/a.npy", 0)
    check(artifact / "deep/a.npy", most_bytes=50)
    assert list(faults(artifact))


def test_what_was_never_sealed_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check(tmp_path / "file")
    assert [reason for _, reason in faults(tmp_path)] == [
        f"has no {CHECKSUMS}; it was made by an older version, or not by Batchwright"
    ]
