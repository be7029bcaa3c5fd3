from collections.abc import Callable
from pathlib import Path

import pytest

from stages.report import stage


@pytest.fixture
def make_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Run the stage where its artifacts are; what it says comes back."""

    def run() -> str:
        monkeypatch.chdir(tmp_path)
        return stage.main()

    return run
