"""Links between pages lead to files and headings that there are."""

import re
from pathlib import Path

import pytest

from tests.helpers import REPO

PAGES = [
    *REPO.glob("*.md"),
    *REPO.glob("docs/*.md"),
    *REPO.glob("experiments/*.md"),
    *REPO.glob("raw/*/*.md"),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the page's headings."""
    headings = re.findall(r"^#+ (.*)", _plain(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _plain(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(_plain(page)):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_every_module_that_a_page_runs_exists(page: Path) -> None:
    modules = re.findall(r"python -m\s+([\w.]+)", page.read_text(encoding="utf-8"))
    found = [REPO / module.replace(".", "/") for module in modules]
    missing = [
        str(file) for file in found if not file.with_suffix(".py").exists() and not (file / "__main__.py").exists()
    ]
    assert missing == []


def test_the_paths_that_contributors_are_sent_to_exist() -> None:
    named = re.findall(r"`([\w./]+/[\w.]*)`", (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    folders = [REPO, REPO / "batchwright", REPO / "pipelines", REPO / "pipelines/ingest", REPO / "trainers"]
    assert [path for path in named if not any((folder / path).exists() for folder in folders)] == []
