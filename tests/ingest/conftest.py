"""Sources anywhere in the working directory, to keep the tests short; ``test_watched`` has the rule."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stages.ingest.RAW_PAIRS", Path())
