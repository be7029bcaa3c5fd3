"""The package, installed as users install it, and an empty project."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.helpers import REPO


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel that an image gets, and all other packages of this one; return its ``bin``."""
    pytest.importorskip("hatchling", reason="builds the wheel; installed by make")
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    copy_image_context(source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source]
    subprocess.run(build, check=True)
    venv.create(folder / "venv", with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    [wheel] = folder.glob("*.whl")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder / "venv/bin/python",
        "install",
        "--quiet",
        "--no-deps",
        wheel,
    ]
    subprocess.run(command, check=True)
    added = {each.name for each in site.iterdir() if not each.name.endswith((".pth", ".dist-info"))}
    assert added == {"batchwright", "pipelines", "project", "stages", "trainers"}
    return folder / "venv/bin"


def copy_image_context(folder: Path) -> None:
    """Copy what ``.dockerignore`` lets the Dockerfile copy."""
    lines = (REPO / ".dockerignore").read_text().splitlines()
    for path in [path for line in lines if line.startswith("!") for path in REPO.glob(line[1:])]:
        target = folder / path.relative_to(REPO)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, target)


@pytest.fixture
def project(workspace: Path) -> Path:
    """A folder with the ``params.yaml`` that ``init`` makes; the test runs in it."""
    (workspace / "params.yaml").write_text((REPO / "project/template/params.yaml").read_text())
    return workspace
