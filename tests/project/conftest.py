"""The package, installed as users install it, and an empty project."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.helpers import REPO


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel of this package, and all other packages of this one; return its ``bin``."""
    pytest.importorskip("hatchling", reason="builds the wheel; installed by make")
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, REPO]
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


@pytest.fixture
def project(workspace: Path) -> Path:
    """A folder with the ``params.yaml`` that ``init`` makes; the test runs in it."""
    (workspace / "params.yaml").write_text((REPO / "project/template/params.yaml").read_text())
    return workspace
