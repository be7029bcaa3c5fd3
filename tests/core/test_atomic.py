"""Files and folders appear complete or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from batchwright.core.atomic import CHECKSUMS, atomic_dir, atomic_file, remove_leftovers
from tests.helpers import project_environment


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
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"folder", "folder/fails-False", f"folder/{CHECKSUMS}"}


def test_a_folder_is_replaced_whole_not_merged(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for name in ("first", "second"):
        with atomic_dir(folder) as temporary:
            (temporary / name).touch()
    assert {file.name for file in folder.iterdir()} == {"second", CHECKSUMS}


def test_published_files_and_folders_are_readable_by_others(tmp_path: Path) -> None:
    with atomic_dir(tmp_path / "folder") as temporary:
        (temporary / "file").touch(mode=0o600)
    with atomic_file(tmp_path / "file"):
        pass
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "folder", tmp_path / "folder/file", tmp_path / "file")]
    assert modes == [0o755, 0o644, 0o644]


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    (tmp_path / ".folder~killed1" / "deep").mkdir(parents=True)
    with atomic_dir(tmp_path / "folder") as temporary:
        (temporary / "file").touch()
    assert {path.name for path in tmp_path.iterdir()} == {"folder"}


@pytest.mark.parametrize("other", ["folder-b", "folder.b", "folder.old", "folderb"])
def test_a_writer_touches_no_other_ones_folder(tmp_path: Path, other: str) -> None:
    with atomic_dir(tmp_path / other) as first:
        (first / "file").touch()
        with atomic_dir(tmp_path / "folder"):
            pass
    assert (tmp_path / other / "file").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"folder", other}


def test_a_writer_killed_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    with atomic_dir(tmp_path / "folder") as temporary:
        (temporary / "first").touch()
    (tmp_path / "folder").rename(tmp_path / ".folder~killed1.old")
    with pytest.raises(KeyError), atomic_dir(tmp_path / "folder"):
        raise KeyError
    assert (tmp_path / "folder/first").exists()


def test_temporary_files_of_killed_writers_are_removed_and_no_others(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from batchwright.core.atomic import atomic_file
with atomic_file(Path(sys.argv[1])) as temporary:
    os.kill(os.getpid(), 9)
"""
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "deep/killed.tsv")], env=project_environment(), check=False
    )
    assert len(list(tmp_path.rglob(".killed.tsv.*"))) == 1
    (tmp_path / ".mine.tsv").touch()
    with atomic_file(tmp_path / "running.tsv"):
        remove_leftovers(tmp_path)
        assert len(list(tmp_path.rglob(".*"))) == 2
    assert {file.name for file in tmp_path.rglob("*")} == {"deep", ".mine.tsv", "running.tsv"}


@pytest.mark.parametrize("own", [True, False])
def test_an_artifact_is_replaced_on_a_mount_but_never_half(tmp_path: Path, own: bool) -> None:
    """A container may mount ``data``, or even ``data/pairs``."""
    for name in ("outside", "inside"):
        (tmp_path / name).mkdir()
    target = "inside/pairs" if own else "inside"
    (tmp_path / "outside/before").touch()
    script = f"""
        mkdir -p {target} && mount --bind outside {target} || exit 99
        for content in first second; do
            {sys.executable} -c "from pathlib import Path
from batchwright.core.atomic import atomic_dir
with atomic_dir(Path('inside/pairs')) as folder:
    (folder / '$content').touch()"
        done
        find inside -type f ! -name {CHECKSUMS}
    """
    environment = project_environment()
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    if "unshare" in ended.stderr or ended.returncode == 99:
        pytest.skip("mounting needs user namespaces, which are not allowed here")
    if own:  # nothing can replace a mount point
        assert "inside/pairs: is a mount point, which cannot be replaced; mount inside instead" in ended.stderr
        assert ended.stdout.split() == ["inside/pairs/before"]
    else:
        assert sorted(ended.stdout.split()) == ["inside/before", "inside/pairs/second"]
