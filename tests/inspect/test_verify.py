"""``batchwright verify``: damage in what DVC's stages wrote is named, removed, and made anew."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from batchwright.verify import verify
from tests.helpers import project_environment

STAGE = """
from pathlib import Path
from batchwright.core.atomic import atomic_dir, atomic_file
with atomic_dir(Path("data/sealed")) as folder:
    (folder / "a.npy").write_bytes(bytes(range(200)))
    (folder / "b.json").write_text("{}")
with atomic_file(Path("data/alone.parquet")) as file:
    file.write_bytes(bytes(300))
Path("results/plots").mkdir(parents=True, exist_ok=True)
for name in ("one.tsv", "plots/two.tsv", "plots/three.tsv"):
    Path("results", name).write_text(name * 9)
"""
PIPELINE = """
stages:
  make:
    cmd: python stage.py
    deps: [stage.py]
    outs: [data/sealed, data/alone.parquet, {results/plots: {cache: false}}]
    metrics: [{results/one.tsv: {cache: false}}]
"""
FILES = ["data/sealed/a.npy", "data/sealed/b.json", "data/sealed/checksums.sha256", "data/alone.parquet"]
FILES += ["results/one.tsv", "results/plots/two.tsv"]


Dvc = Callable[..., None]


@pytest.fixture(scope="module")
def dvc(warm: Path) -> Dvc:
    """Run commands of DVC in the working directory."""
    environment = project_environment(PATH=f"{warm}:{os.environ['PATH']}")

    def run(*commands: str) -> None:
        for command in commands:
            subprocess.run(["dvc", *command.split()], env=environment, check=True)

    return run


@pytest.fixture(scope="module", params=["hardlink", "copy"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, dvc: Dvc) -> Path:
    """A finished pipeline, with either link of DVC's cache."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "stage.py").write_text(STAGE)
    (folder / "dvc.yaml").write_text(PIPELINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        dvc("init --quiet --no-scm", f"config cache.type {request.param}", "repro --quiet")
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, with its links."""
    subprocess.run(["cp", "-a", f"{made}/.", tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flip(file: Path) -> None:
    """Flip a bit as a failing disk does: nobody sees that the file was written."""
    before = file.stat()
    file.chmod(0o644)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    with file.open("r+b") as handle:
        handle.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    file.chmod(before.st_mode)


def test_what_is_sound_is_said_to_be(project: Path) -> None:
    assert verify() == "4 artifacts are as they were made"
    assert verify(Path("data/sealed")) == "1 artifacts are as they were made"


def test_what_is_not_here_is_told(project: Path) -> None:
    shutil.rmtree("data/sealed")
    told = "3 artifacts are as they were made; 1 more of dvc.lock are not here, such as data/sealed: dvc repro --pull"
    assert verify() == told


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_named_and_mended(project: Path, dvc: Dvc, name: str) -> None:
    flip(project / name)
    artifact = name if "plots" not in name else "results/plots"
    with pytest.raises(
        InputError, match=f"{artifact}: (damaged|is not what)" if "checksums" not in name else "b.json|a.npy|damaged"
    ):
        verify()
    assert verify(mend=True).startswith("removed ")
    dvc("repro --quiet")
    assert verify() == "4 artifacts are as they were made"


def test_a_missing_file_of_a_folder_is_named(project: Path) -> None:
    (project / "data/sealed/b.json").unlink()
    with pytest.raises(InputError, match=r"data/sealed/b.json: missing"):
        verify(Path("data"))


def test_nothing_to_verify_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="nothing to verify here"):
        verify()
