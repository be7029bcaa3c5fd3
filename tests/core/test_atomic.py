"""Files and folders appear complete or not at all."""

import os
import tempfile
from pathlib import Path

import pytest

from batchwright.core.atomic import atomic_dir, atomic_file, publish_dir


def test_a_file_appears_when_its_block_succeeds_and_replaces_the_one_there(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "name.txt"
    for content in ("first", "second"):
        with atomic_file(file) as temporary:
            temporary.write_text(content)
        assert file.read_text() == content
    assert list(file.parent.iterdir()) == [file]


def test_a_file_keeps_its_old_content_until_its_block_ends(tmp_path: Path) -> None:
    file = tmp_path / "name.txt"
    file.write_text("old")
    with atomic_file(file) as temporary:
        temporary.write_text("new")
        assert file.read_text() == "old"


def test_a_failing_block_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "name.txt"
    file.write_text("old")
    with pytest.raises(KeyError), atomic_file(file) as temporary:
        temporary.write_text("half")
        raise KeyError
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_failing_block_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for fails in (False, True):
        try:
            with atomic_dir(folder) as temporary:
                (temporary / f"fails-{fails}").touch()
                if fails:
                    raise KeyError
        except KeyError:
            pass
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*")] == [Path("folder"), Path("folder/fails-False")]


def test_a_folder_is_replaced_whole_not_merged(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for name in ("first", "second"):
        with atomic_dir(folder) as temporary:
            (temporary / name).touch()
    assert [file.name for file in folder.iterdir()] == ["second"]


def test_published_files_and_folders_are_readable_by_others(tmp_path: Path) -> None:
    with atomic_dir(tmp_path / "folder") as temporary:
        (temporary / "file").touch(mode=0o600)
    with atomic_file(tmp_path / "file"):
        pass
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "folder", tmp_path / "folder/file", tmp_path / "file")]
    assert modes == [0o755, 0o644, 0o644]


def test_a_finished_folder_is_moved_into_place(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "file").write_text("content")
    publish_dir(tmp_path / "scratch", tmp_path / "data" / "out")
    assert (tmp_path / "data" / "out" / "file").read_text() == "content"
    assert not (tmp_path / "scratch").exists()


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    (tmp_path / ".folder.killed1" / "deep").mkdir(parents=True)
    (tmp_path / ".folder-b.other").mkdir()
    with atomic_dir(tmp_path / "folder") as temporary:
        (temporary / "file").touch()
    assert {path.name for path in tmp_path.iterdir()} == {"folder", ".folder-b.other"}


def test_a_finished_folder_can_come_from_another_disk(tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if not os.access(other, os.W_OK) or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to write to")
    with tempfile.TemporaryDirectory(dir=other) as name:
        (Path(name) / "parts" / "deep").mkdir(parents=True)
        (Path(name) / "parts" / "deep" / "file").write_text("content")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "old").touch()
        publish_dir(Path(name) / "parts", tmp_path / "out")
        assert not (Path(name) / "parts").exists()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file.relative_to(tmp_path) for file in files] == [Path("out/deep/file")]
