"""Parts of large sources are read in several processes."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from batchwright.core.errors import InputError
from pipelines.ingest import pipeline
from stages.ingest import main
from tests.helpers import tree, wait_for
from tests.ingest.running import configure
from tests.ingest.tables import COLUMNS, ROWS, write

MAPPING = {"columns": COLUMNS, "domain_column": "area"}


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each of two processes waits for the other one."""
    monkeypatch.setattr(pipeline, "_LARGE", 0)
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "2")
    noted, real = tmp_path / "noted", pipeline.read_part
    noted.mkdir()

    def read_part(*arguments: Any) -> None:
        (noted / str(os.getpid())).touch()
        wait_for(lambda: len(list(noted.iterdir())) == 2, "two parts are never read at a time")
        real(*arguments)

    monkeypatch.setattr(pipeline, "read_part", read_part)


def test_two_processes_write_the_same_bytes(workspace: Path, request: pytest.FixtureRequest) -> None:
    configure(*({**write(file, rows), **MAPPING} for file, rows in (("a.jsonl", ROWS[:16]), ("b.csv", ROWS[10:]))))
    main()
    alone = tree(Path("data"))
    shutil.rmtree(".scratch")
    request.getfixturevalue("two_processes")
    main()
    assert tree(Path("data")) == alone


@pytest.mark.usefixtures("two_processes")
def test_the_errors_of_all_files_are_told(workspace: Path) -> None:
    files = [{**write(file, [{"ask": "why?"}]), **MAPPING} for file in ("a.csv", "b.csv")]
    configure(*files)
    with pytest.raises(InputError, match=r"a\.csv: no column .*\nb\.csv: no column "):
        main()
