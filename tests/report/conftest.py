from collections.abc import Callable
from pathlib import Path

import pytest

from stages.report import __main__ as report


@pytest.fixture
def make_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run the stage where its artifacts are, with these arguments; what it says comes back."""

    def run(*arguments: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["report", *arguments])
        return report.main()

    return run
