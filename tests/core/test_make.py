"""What ``make`` tells the reader to do next."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers import REPO

TARGETS = re.findall(r"^([a-z-]+):.*## ", (REPO / "Makefile").read_text(), re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose tools are installed and always succeed."""
    shutil.copy(REPO / "Makefile", tmp_path)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    for tool in ("batchwright", "dvc", "pytest", "python", "ruff", "uv"):
        (tools / tool).write_text("#!/bin/sh\necho a==1\n")
        (tools / tool).chmod(0o755)
    (tools / ".installed").touch()
    for source in ("requirements.lock", "pyproject.toml"):
        (tmp_path / source).touch()
        os.utime(tmp_path / source, (0, 0))
    return tmp_path


def make(target: str, folder: Path) -> str:
    """What ``make target`` prints, also where these tests were themselves started by make."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", target], cwd=folder, env=outside, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "help"])
def test_every_target_says_at_its_end_what_comes_next(folder: Path, target: str) -> None:
    said = make(target, folder)
    assert "Next:" in said or said.endswith("All tests pass\n")


def test_repro_names_the_report_and_how_to_go_on(folder: Path) -> None:
    shown = make("repro", folder)
    for hint in ("report/index.html", "source .venv/bin/activate", "dvc metrics show", "dvc plots show"):
        assert hint in shown
