"""Sources that DVC does not watch are refused, since it would go on with stale pairs."""

from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from batchwright.core.paths import check_watched, unwatched
from tests.helpers import run_stage
from tests.ingest.running import configure
from tests.ingest.tables import COLUMNS, ROWS, write

RAW = Path("raw/pairs")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("raw/pairs/a.csv", None),
        ("./raw/pairs/deep/a.csv", None),
        ("raw/pairs/linked.csv", None),
        ("raw/other/a.csv", "lies outside raw/pairs"),
        ("raw/pairs/../a.csv", "lies outside raw/pairs"),
        ("/elsewhere/a.csv", "lies outside raw/pairs"),
        ("raw/pairs/link/a.csv", "raw/pairs/link is a link to a folder"),
    ],
)
def test_links_to_files_are_watched_and_links_to_folders_are_not(
    workspace: Path, path: str, reason: str | None
) -> None:
    RAW.mkdir(parents=True)
    (RAW / "linked.csv").symlink_to("/elsewhere/a.csv")
    (RAW / "link").symlink_to("/elsewhere")
    assert unwatched(path, RAW) == reason


def test_the_stage_refuses_a_file_elsewhere(workspace: Path) -> None:
    source = write("elsewhere/a.jsonl", ROWS)
    configure({**source, "columns": COLUMNS, "domain_column": "area"})
    done = run_stage("ingest", cwd=workspace)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "ingest: error: elsewhere/a.jsonl: lies outside raw/pairs, so dvc repro would not notice when it changes; "
        "link its files to raw/pairs\n"
    )
    with pytest.raises(InputError, match="lies outside raw/vectors"):
        check_watched(["v.parquet"], Path("raw/vectors"))
