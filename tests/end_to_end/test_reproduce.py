"""What docs/results.md says of reproducing works, in its order: in a clone of this repository."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.docs import REPRODUCE, steps
from tests.end_to_end.project import ROOT

FETCH, AGAIN = steps(REPRODUCE)
ENVIRONMENT = ROOT / ".venv"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone made by the page's first line, with this repository's environment: installing one takes minutes."""
    if not (ROOT / ".git").exists() or not ENVIRONMENT.exists():
        pytest.skip("needs a git clone with the environment that make repro installs")
    run(FETCH[0].replace("URL", str(ROOT)).replace("git clone", "git clone --quiet"), tmp_path)
    made = tmp_path / "batchwright"
    (made / ".venv").symlink_to(ENVIRONMENT)
    (made / ".git/info/exclude").write_text(".venv\n")  # a link is not the folder that .gitignore names
    (made / ".venv/bin/.installed").touch()  # as new as the clone's requirements
    return made


def test_make_repro_is_the_whole_pipeline(clone: Path) -> None:
    assert FETCH[1:] == ["make repro", "git status --short"]
    assert "dvc repro" in run("make --dry-run repro", clone)
    assert run("git status --short", clone) == ""


@pytest.mark.slow
def test_the_page_leads_to_all_results(clone: Path) -> None:
    run(FETCH[1], clone)
    changed = [line.split()[1] for line in run(FETCH[2], clone).splitlines()]
    assert [file for file in changed if not file.startswith(("dvc.lock", "results/"))] == []  # another processor's bits
    shown = {line: run(f"{AGAIN[0]}\n{line}", clone) for line in AGAIN[1:]}
    assert "up to date" in shown["dvc status"]
    assert "Running stage 'pack@contextual'" in shown["dvc repro --single-item --force pack@contextual"]


def run(command: str, folder: Path) -> str:
    """Output of a command, which must not fail."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BATCHWRIGHT")}
    done = subprocess.run(
        command,
        cwd=folder,
        shell=True,
        executable="/bin/bash",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
