"""README and docs show the committed results, and what commands print."""

import re

import pytest

from docs.tables import PAGES, ROOT, fill


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_match_the_committed_results(page):
    text = page.read_text(encoding="utf-8")
    assert fill(text) == text, "run python -m docs.tables"


def test_the_readme_shows_what_make_prints():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [console] = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    printed = [line for line in console.splitlines() if line and not line.startswith(("$", "..."))]
    assert len(printed) > 5
    assert [line for line in printed if line not in makefile] == []
