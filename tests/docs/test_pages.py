"""README and docs show the committed results, and what commands print."""

import re
import subprocess
from pathlib import Path

import pytest

from docs.tables import PAGES, ROOT, fill


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is committed, whatever a run has written since: on another processor, results differ."""
    folder = tmp_path_factory.mktemp("committed")
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "--extract", "--file=-"], cwd=folder, input=archive, check=True)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_show_the_committed_results_or_those_to_be_committed(page: Path, committed: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text in (fill(text, committed), fill(text)), "run python -m docs.tables"


def test_the_readme_shows_what_make_prints():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [console] = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    printed = [line for line in console.splitlines() if line and not line.startswith(("$", "..."))]
    assert len(printed) > 5
    assert [line for line in printed if line not in makefile] == []
