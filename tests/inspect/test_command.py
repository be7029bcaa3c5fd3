"""The command itself: its help, its script, its speed, and the page that describes it."""

import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from project.__main__ import main
from tests.end_to_end.docs import LOOK
from tests.helpers import REPO, project_environment, run_python
from tests.inspect.conftest import Ask

PAGE = LOOK.text
DOCUMENTED = re.findall(r"^batchwright .*", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", DOCUMENTED)
def test_the_commands_of_the_page_run(ask: Ask, command: str) -> None:
    assert ask(*shlex.split(command, comments=True)[1:])


def test_the_page_shows_every_way_to_ask() -> None:
    assert len(DOCUMENTED) > 5
    for option in ("--row", "--worst", "--shards", "--full", "--json", "diff"):
        assert option in PAGE


@pytest.mark.parametrize("arguments", [[], ["show"], ["diff"]])
def test_help_shows_examples_and_runs_nothing(arguments: list[str], tmp_path: Path, warm: Path) -> None:
    done = run_python("-m", "project", *arguments, "--help", cwd=tmp_path, programs=warm)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: batchwright")
    assert re.search(r"examples:\n +batchwright \w", done.stdout)
    assert not list(tmp_path.iterdir())


def test_no_command_at_all_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: batchwright")


def test_the_installed_script_runs_the_same_function() -> None:
    scripts = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["scripts"]
    module, name = scripts["batchwright"].split(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("arguments", ["'show', '0', '--row', '1'", "'show', 'list file'", "'show'"])
def test_it_needs_no_more_than_the_library_and_never_loads_pandas(project: Path, arguments: str) -> None:
    script = (
        f"import sys; from project.__main__ import main; main([{arguments}]);"
        "heavy = {'pandas', 'torch', 'faiss', 'scipy', 'tqdm', 'pyarrow.dataset'} & set(sys.modules);"
        "print(heavy or 'light')"
    )
    done = run_python("-c", script, cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "light"


def test_a_reader_that_has_seen_enough_is_no_error(project: Path) -> None:
    line = f"{sys.executable} -m project show --full 0 | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=project, env=project_environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
