"""``batchwright init``: a project of one's own."""

import shutil
import subprocess
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.home import code_root
from project.upgrade import copy, write_pipeline

TEMPLATE = Path(__file__).with_name("template")
_FROM_REPOSITORY = (".gitignore", ".dvcignore", ".dvc/config")
_READ_BY_THE_REPORT = ("results/pretrain", "results/tokens")
"""Folders that DVC must find, even if no stage writes to them."""


def main(folder: Path) -> str:
    """Make a project in ``folder``, a git repository with DVC; return what to do next.

    Raises:
        InputError: the folder holds something else.
    """
    if folder.exists() and any(each.name != ".git" for each in folder.iterdir()):
        raise InputError(f"{folder}: is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        _run("git", "init", "--quiet", "--initial-branch", "main", cwd=folder)
    _run("dvc", "init", "--quiet", cwd=folder)
    for name in _FROM_REPOSITORY:
        copy(code_root() / name, folder / name)
    for notes in (code_root() / "raw").glob("*/README.md"):
        copy(notes, folder / "raw" / notes.parent.name / notes.name)
    for name in _READ_BY_THE_REPORT:
        copy(code_root() / "results/tokens/README.md", folder / name / "README.md")
    shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
    write_pipeline(folder)
    _run("git", "add", ".", cwd=folder)
    return f"{folder} is ready. Next:\n  cd {folder}\n  batchwright add FILE    your pairs\n  dvc repro"


def _run(*command: str, cwd: Path) -> None:
    try:
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise InputError(f"{command[0]} is not installed; a project needs git, and pip install dvc") from None
    except subprocess.CalledProcessError as error:
        raise InputError(f"{' '.join(command)} failed in {cwd}: {error.stderr.strip().splitlines()[-1]}") from None
