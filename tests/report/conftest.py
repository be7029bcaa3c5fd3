from collections.abc import Callable
from pathlib import Path

import pytest

from stages.report import stage


@pytest.fixture
def make_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Run the stage in the folder with its artifacts and return its summary."""

    def run() -> str:
        monkeypatch.chdir(tmp_path)
        return stage.main()

    return run
