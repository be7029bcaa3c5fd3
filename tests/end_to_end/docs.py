"""Commands that README and docs show."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DVC_PAGE = ROOT / "docs" / "dvc.md"
REPRODUCE_PAGE = ROOT / "docs" / "reproduce.md"
REBUILD_PAGE = ROOT / "docs" / "rebuild.md"
RETRAIN_PAGE = ROOT / "docs" / "retrain.md"
CLUSTER_PAGE = ROOT / "docs" / "cluster.md"
WALKS = (DVC_PAGE, REPRODUCE_PAGE, REBUILD_PAGE, RETRAIN_PAGE, CLUSTER_PAGE)
"""Pages whose lines of shell are steps, one after the other; tests of their own run their code."""


def commands(language: str) -> set[str]:
    """Fenced code of one language: whole blocks of Python, or single lines of shell without comments.

    Pages whose lines are steps are left out; they are for ``steps``.
    """
    blocks = [block for page in PAGES if page not in WALKS for block in _blocks(page, language)]
    if language == "python":
        return set(blocks)
    return {line for block in blocks for line in _lines(block)}


def steps(page: Path) -> list[list[str]]:
    """Lines of shell, one list for each fenced block, in the page's order."""
    return [_lines(block) for block in _blocks(page, "sh")]


def code(page: Path) -> list[str]:
    """Blocks of Python, in the page's order."""
    return _blocks(page, "python")


def profiles_named() -> set[str]:
    """Profiles that pages tell the reader to run."""
    return {found for page in PAGES for found in re.findall(r"`dvc exp run -S profiles=(\w+)", page.read_text())}


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def _lines(block: str) -> list[str]:
    return [stripped for line in block.splitlines() if (stripped := re.sub(r"\s+#.*", "", line))]
