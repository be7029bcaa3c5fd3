"""README and docs show the committed results."""

import pytest

from docs.tables import PAGES, ROOT, fill
from stages.report.sections.experiments import read_experiments


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_match_the_committed_results(page):
    text = page.read_text(encoding="utf-8")
    assert fill(text) == text, "run python -m docs.tables"


def test_the_report_can_show_what_is_in_experiments():
    shown = {experiment.name: experiment.table for experiment in read_experiments(ROOT / "experiments")}
    assert {"batches/quality", "batches/quality_code"} <= set(shown)
    assert all(len(row) == len(table.header) for table in shown.values() for row in table.rows)
