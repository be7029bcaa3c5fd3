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
    for tool in ("dvc", "mypy", "pytest", "python", "ruff", "uv"):
        (tools / tool).write_text("#!/bin/sh\necho a==1\n")
        (tools / tool).chmod(0o755)
    (tools / ".installed").touch()
    for source in ("requirements.lock", "pyproject.toml"):
        (tmp_path / source).touch()
        os.utime(tmp_path / source, (0, 0))
    return tmp_path


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "help"])
def test_every_target_says_at_its_end_what_comes_next(folder: Path, target: str) -> None:
    done = subprocess.run(["make", target], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Next:" in done.stdout or done.stdout.endswith("All tests pass\n")


def test_repro_names_the_report_and_how_to_go_on(folder: Path) -> None:
    shown = subprocess.run(["make", "repro"], cwd=folder, capture_output=True, text=True).stdout
    for hint in ("report/index.html", "source .venv/bin/activate", "dvc metrics show", "dvc plots show"):
        assert hint in shown
