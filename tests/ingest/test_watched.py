"""Sources that DVC does not watch are refused, since it would go on with stale pairs."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from batchwright.core.errors import InputError
from batchwright.core.paths import check_watched, unwatched
from stages import ingest
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


@pytest.mark.parametrize("change", ["grows", "is replaced", "comes", "goes"])
def test_a_source_that_changes_while_it_is_read_is_refused(workspace: Path, change: str, monkeypatch) -> None:
    """DVC would take the new content for what was read."""
    folder = workspace / "raw/pairs/many"
    folder.mkdir(parents=True)
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_text(json.dumps({"query": "q", "document": name}) + "\n")
    source = {"kind": "jsonl", "path": "raw/pairs/many/*.jsonl", "domain": "d"}
    params = {"ingest": {"sources": [source], "held_out": 0.1, "max_reject_rate": 0.5}}
    (workspace / "params.yaml").write_text(yaml.safe_dump(params))
    real = ingest.read_sources

    def slow(*arguments: Any) -> object:
        found = real(*arguments)
        file = folder / "b.jsonl"
        if change == "grows":
            with file.open("a") as handle:
                handle.write('{"query": "r", "document": "s"}\n')
        elif change == "is replaced":
            (folder / "new").write_text(file.read_text())
            (folder / "new").replace(file)
        elif change == "comes":
            (folder / "c.jsonl").write_text(file.read_text())
        else:
            file.unlink()
        return found

    monkeypatch.setattr(ingest, "read_sources", slow)
    with pytest.raises(InputError, match=r"raw/pairs/many/[bc].jsonl: changed while it was read; run the stage again"):
        ingest.main()
    assert not (workspace / "data/pairs").exists()
