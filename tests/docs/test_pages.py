"""README and docs show the committed results."""

import pytest

from docs.tables import PAGES, fill


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_match_the_committed_results(page):
    text = page.read_text(encoding="utf-8")
    assert fill(text) == text, "run python -m docs.tables"
